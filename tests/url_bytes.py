"""Counts what one URL source sends and receives in an hour of nothing new, with and without 304.

``python -m tests.url_bytes``: the polls of an hour run one after another against a server on
loopback, over one kept connection as against a real one; bytes are those of HTTP (and TLS), without
TCP and IP headers.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from edgelet.adapters.url.fetch import Access, Fetcher, Validators
from tests.support import web
from tests.support.certificates import Authority
from tests.support.relay import Relay
from tests.support.sources import manifest, many

POLLS = 180
"""An hour at 20 s."""

BODY = many(*(manifest(f"pod-{n}") for n in range(15)))


def script(etag: bool) -> web.Script:
    """A server that names its version, or does not."""

    def answer(request: web.Request) -> web.Answer:
        date = {"Date": "Sat, 01 Jan 2022 00:00:00 GMT", "Server": "nginx/1.22.1", "Content_Type": "text/yaml"}
        if not etag:
            return web.answer(BODY, **date)
        if request.headers.get("if-none-match") == '"5f1c-6a"':
            return web.answer(status="304 Not Modified", Content_Length="", ETag='"5f1c-6a"', **date)
        return web.answer(BODY, ETag='"5f1c-6a"', **date)

    return answer


def measure(authority: Authority | None, etag: bool, polls: int = POLLS) -> tuple[int, int]:
    """Bytes (sent, received) of `polls` polls."""
    pair = authority.issue("server") if authority else None
    with web.WebServer(script(etag), pair) as server, Relay(server.port) as relay:
        url = server.url.replace(str(server.port), str(relay.port))
        fetcher = Fetcher(url, Access(ca_file=authority.ca if authority else ""))
        held = Validators()
        for _ in range(polls):
            held = fetcher(held).validators
        fetcher.close()
        return relay.sent, relay.received


def main() -> int:
    """Print the table."""
    print(f"body {len(BODY)} bytes, {POLLS} polls")
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(Path(directory) / "ca")
        for name, who in (("http", None), ("https", authority)):
            for etag in (False, True):
                sent, received = measure(who, etag)
                print(f"{name:5} {'304' if etag else '200':3}: sent {sent:7,}, received {received:9,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
