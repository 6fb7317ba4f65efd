"""Certificates and tokens of the TLS port: made once, kept under the root directory, renewed in time.

`store.Store` is the way in.  `make` runs in a short-lived child process, because the library that
signs costs memory for good in the process that imports it.
"""
