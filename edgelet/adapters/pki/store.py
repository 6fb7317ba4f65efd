"""The directory of keys: ``ca.key``, ``ca.pem``, ``serving.pem`` (key too), ``serving.json``, ``tokens.csv``.

Readable by root only.  The CA never expires in practice, so that a clock that was wrong on the first
day makes no kubeconfig void; the serving certificate is renewed in its last third, when it is not
valid yet, and when the names it must carry change.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from ... import durable, errors

CHILD_SECONDS = 120
RENEW_BEFORE = 0.33
"""Part of its life at which a certificate is renewed."""

_MAKER = f"{__package__}.make"


class Store:
    """Makes what is missing; `names` are the DNS names and IP addresses that the certificate carries."""

    def __init__(self, directory: str, names: Iterable[str]) -> None:
        self._dir = directory
        self._names = sorted(set(names))

    @property
    def ca(self) -> str:
        """Path of the CA's certificate."""
        return os.path.join(self._dir, "ca.pem")

    @property
    def serving(self) -> str:
        """Path of the serving certificate with its key."""
        return os.path.join(self._dir, "serving.pem")

    @property
    def tokens(self) -> str:
        """Path of the tokens, as kube-apiserver's --token-auth-file has them: token,user,uid,"groups"."""
        return os.path.join(self._dir, "tokens.csv")

    def ensure_certificate(self, now: float) -> None:
        """Make or renew the serving certificate when that is due. Raises errors.StateError."""
        if self._good(now):
            return
        durable.make_directory(self._dir, 0o700)
        command = [sys.executable, "-m", _MAKER, self._dir, str(int(now)), *self._names]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=CHILD_SECONDS)
        except subprocess.CalledProcessError as error:
            why = (error.stderr or "").strip().splitlines()
            raise errors.StateError(f"cannot make a certificate: {_advice(why[-1] if why else str(error))}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise errors.StateError(f"cannot make a certificate: {errors.cause(error)}") from error

    def ensure_tokens(self) -> None:
        """Make one token for each role, once. Raises errors.StateError."""
        if os.path.exists(self.tokens):
            return
        durable.make_directory(self._dir, 0o700)
        rows = [f'{secrets.token_urlsafe(32)},{role},{role},"edgelet:{role}"\n' for role in ("admin", "view")]
        durable.write(self.tokens, "".join(rows).encode(), 0o600)

    def _good(self, now: float) -> bool:
        found = self._facts()
        if not (os.path.exists(self.ca) and os.path.exists(self.serving) and found.get("names") == self._names):
            return False
        begin, end = float(found.get("notBefore", 0)), float(found.get("notAfter", 0))
        return begin <= now < end - (end - begin) * RENEW_BEFORE

    def _facts(self) -> dict[str, Any]:
        try:
            with open(os.path.join(self._dir, "serving.json"), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def _advice(why: str) -> str:
    if "No module named 'cryptography" not in why:
        return why
    return (
        "the Python library cryptography is not installed; install it, or give a certificate (tlsCertFile), "
        "or switch the port off (port: 0)"
    )
