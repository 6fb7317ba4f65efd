"""What a web server's status means for a source of manifests; how requests fail stands in `outgoing.failures`."""

from __future__ import annotations

from collections.abc import Mapping

from ...outgoing.failures import FetchError, retry_after, translated

__all__ = ["FetchError", "status", "translated"]

MEANINGS = {
    401: "it wants credentials: see --manifest-url-header and the token file",
    403: "it refuses these credentials",
    404: "there is nothing at this address",
    407: "the proxy wants credentials",
    429: "it is asked too often",
    503: "it is overloaded or being maintained",
}


def status(code: int, reason: str, headers: Mapping[str, str]) -> FetchError:
    """The error for an HTTP status that is not 200 or 304."""
    meaning = MEANINGS.get(code)
    text = f"the server answers {code} {reason}".rstrip() + (f": {meaning}" if meaning else "")
    return FetchError(text, retry_after(headers) if code in {429, 503} else None)
