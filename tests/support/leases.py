"""Reads Podman's address leases: which container holds which address of which network.

They stand in a bbolt database (netavark's IPAM, `/run/containers/networks/ipam.db`) that no command of
Podman's shows.  Only what is needed of the format is read: meta pages, branch and leaf pages, buckets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

PATH = Path("/run/containers/networks/ipam.db")
BRANCH, LEAF, BUCKET = 0x01, 0x02, 0x01
HEADER = 16
MAGIC = 0xED0CDAED


def leases(path: Path = PATH) -> dict[str, str]:
    """The container id by "network address", in no order; {} when there is no database yet."""
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return {}
    found = {}
    for network, addresses in _pairs(data, _root(data)):
        for subnet, held in _pairs(data, addresses) if addresses is not None else ():
            for address, holder in _pairs(data, held) if b"/" in subnet and isinstance(held, (int, bytes)) else ():
                if address != b"lastIP" and isinstance(holder, bytes):
                    found[f"{network.decode()} {'.'.join(map(str, address[-4:]))}"] = holder.decode()
    return found


def _root(data: bytes) -> int:
    """The page of the root bucket, from the newer of the two meta pages."""
    metas = []
    page_size = struct.unpack_from("<I", data, HEADER + 8)[0]
    for start in (HEADER, HEADER + page_size):
        magic, _, _, _, root, _, _, _, transaction = struct.unpack_from("<IIIIQQQQQ", data, start)
        if magic == MAGIC:
            metas.append((transaction, root))
    return int(max(metas)[1])


Value = int | bytes


def _pairs(data: bytes, place: Value) -> Iterator[tuple[bytes, Value]]:
    """Keys and values of a bucket (`place`: its page, or an inline page); a bucket's value is its place."""
    page_size = struct.unpack_from("<I", data, HEADER + 8)[0]
    page = data[place * page_size :] if isinstance(place, int) else place
    _, flags, count, _ = struct.unpack_from("<QHHI", page)
    for number in range(count):
        at = HEADER + number * 16
        if flags & BRANCH:
            yield from _pairs(data, struct.unpack_from("<IIQ", page, at)[2])
            continue
        kind, position, key_size, value_size = struct.unpack_from("<IIII", page, at)
        key = page[at + position : at + position + key_size]
        value = page[at + position + key_size : at + position + key_size + value_size]
        yield key, _bucket(value) if kind & BUCKET else value


def _bucket(value: bytes) -> Value:
    root = struct.unpack_from("<Q", value)[0]
    return root or value[16:]
