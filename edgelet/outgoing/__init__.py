"""How requests go out, shared by all that make some: sockets that can be cut, and failures in words."""
