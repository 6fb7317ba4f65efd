"""Nouns: frozen values that the other layers speak in. No I/O, no clock, no threads."""
