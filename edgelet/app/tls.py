"""What the TCP ports of the API are made of, by the settings."""

from __future__ import annotations

import os
from collections.abc import Callable

from .. import config
from ..adapters.pki.store import Store
from ..adapters.server.secure import ReadOnly, Secure

LOCAL = ("localhost", "127.0.0.1", "::1")


def tls_port(settings: config.Settings, node: str, now: Callable[[], float]) -> Secure | None:
    """The port, None when it is switched off."""
    if not settings.port:
        return None
    everywhere = settings.address in ("0.0.0.0", "::")
    names = (node, *LOCAL) if everywhere else (node, *LOCAL, settings.address)
    store = Store(os.path.join(settings.root_dir, "pki"), names)
    own = not settings.tls_cert_file

    def prepare() -> None:
        if own:
            store.ensure_certificate(now())
        if not settings.token_auth_file:
            store.ensure_tokens()

    return Secure(
        address=settings.address,
        port=settings.port,
        cert_file=store.serving if own else settings.tls_cert_file,
        key_file="" if own else settings.tls_private_key_file,
        ca_file=store.ca if own else "",
        client_ca_file=settings.client_ca_file,
        token_file=settings.token_auth_file or store.tokens,
        names=(node, "localhost", *_own_names(settings.tls_cert_file)),
        prepare=prepare,
    )


def read_only_port(settings: config.Settings, node: str) -> ReadOnly | None:
    """The port that asks for nothing, None as long as nobody switches it on."""
    if not settings.read_only_port:
        return None
    return ReadOnly(settings.address, settings.read_only_port, (node, "localhost"))


def _own_names(cert_file: str) -> tuple[str, ...]:
    """The DNS names in a certificate that was given: who reaches us by one of them means us."""
    if not cert_file:
        return ()
    import ssl

    # The one parser of certificates in the standard library; without it their addresses still work.
    try:
        decoded = ssl._ssl._test_decode_cert(cert_file)  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):
        return ()
    return tuple(value for kind, value in decoded.get("subjectAltName", ()) if kind == "DNS")
