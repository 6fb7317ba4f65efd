"""In place of certifi: the host's own certificate authorities (a bundle inside would have to be unpacked, and ages)."""

import os

_PLACES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
)


def where() -> str:
    """The first bundle that exists, else Debian's place."""
    return next((place for place in _PLACES if os.path.exists(place)), _PLACES[0])


def contents() -> str:
    """Its text."""
    with open(where(), encoding="ascii", errors="replace") as file:
        return file.read()
