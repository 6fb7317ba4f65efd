"""Says what went wrong with a request in words of its own: the library's errors end here."""

from __future__ import annotations

import email.utils
import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import EdgeletError

if TYPE_CHECKING:
    from .guard import Guard

NOT_YET_VALID = 9
EXPIRED = 10
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL."""


class FetchError(EdgeletError):
    """No usable answer. `retry_after` in seconds is the server's wish; `clock` = this machine's clock may be why."""

    def __init__(self, message: str, retry_after: float | None = None, clock: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.clock = clock


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by Retry-After (RFC 9110 section 10.2.3); a date counts from the server's own clock."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        then = email.utils.parsedate_to_datetime(value)
        now = email.utils.parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return None
    return max(0.0, then.timestamp() - now.timestamp())


@contextmanager
def translated(guard: Guard, timeout: float) -> Iterator[None]:
    """Turn whatever the library raises into FetchError."""
    import requests
    import urllib3

    try:
        yield
        if guard.expired:
            # A connection cut by the deadline can look like one that ended properly.
            raise TimeoutError
    except FetchError:
        raise
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as err:
        late = (TimeoutError, requests.Timeout, urllib3.exceptions.ReadTimeoutError)
        if guard.expired or any(isinstance(cause, late) for cause in _causes(err)):
            raise FetchError(f"no complete answer within {timeout:g} s") from err
        raise _explain(err) from err


def _explain(err: BaseException) -> FetchError:
    chain = list(_causes(err))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate(cause)
    for cause in chain:
        if type(cause).__name__ == "CertificateError":  # a ValueError of urllib3 1.26, which Debian 12 has
            return FetchError(f"the server's certificate is not accepted: {cause}")
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return FetchError(f"TLS failed: {cause.reason or cause}")
    if any(isinstance(cause, http.client.IncompleteRead) for cause in chain):
        return FetchError("the reply was cut: the connection ended in the middle of it")
    for cause in chain:
        if isinstance(cause, OSError) and cause.strerror:
            return FetchError(f"the server cannot be reached: {cause.strerror}")
    text = " ".join(str(err).split())
    return FetchError(f"the server does not speak HTTP properly, or the connection broke: {text[:200]}")


def _certificate(err: ssl.SSLCertVerificationError) -> FetchError:
    if err.verify_code == NOT_YET_VALID:
        return FetchError(
            "the server's certificate is not valid yet by this machine's clock, which may be wrong:"
            " tried again as soon as the clock is set",
            clock=True,
        )
    if err.verify_code == EXPIRED:
        return FetchError(
            "the server's certificate has expired by this machine's clock: renew it, or set the clock if it is wrong",
            clock=True,
        )
    return FetchError(f"the server's certificate is not accepted: {err.verify_message}")


def _causes(err: BaseException) -> Iterator[BaseException]:
    """The error and all that it wraps: by cause, by context, and as an argument, as urllib3 does."""
    waiting, known = [err], set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in known:
            continue
        known.add(id(one))
        yield one
        inner = [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
        waiting += [x for x in inner if isinstance(x, BaseException)]
