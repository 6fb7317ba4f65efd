"""Decides what an httpGet hook sends (semantics 3.8): as a probe's, by another user agent. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..model.pod import HttpGet
from .probe_request import Url

USER_AGENT = "kube-lifecycle/1.36"

Headers = tuple[tuple[str, str], ...]


def headers(handler: HttpGet) -> Headers:
    """The manifest's headers; the user agent is ours where it sets none."""
    named = any(name.lower() == "user-agent" for name, _ in handler.headers)
    return handler.headers if named else (*handler.headers, ("User-Agent", USER_AGENT))


def without_tls(url: Url, given: Headers) -> tuple[Url, Headers]:
    """The request once more over plain HTTP, where credentials must not go."""
    return replace(url, scheme="http"), tuple(h for h in given if h[0].lower() != "authorization")


def fallback_text(url: Url, container_id: str) -> str:
    """Message of the event LifecycleHTTPFallback."""
    return f"request to HTTPS lifecycle hook {url.authority} of container {container_id[:12]} failed, retried over HTTP"
