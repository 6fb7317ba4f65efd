"""The outside: one file or package per foreign thing; siblings never import each other."""
