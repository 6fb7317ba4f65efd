"""Podman's leases of addresses: a bbolt database that no command of Podman shows or mends.

Layout (libpod, libnetwork/netavark/ipam.go): bucket of the network -> bucket of the subnet -> address: container id,
and bucket "ids" -> container id: JSON list of addresses.  The file's format is bbolt's, version 2 (page.go, db.go):
pages, two of them meta pages of which the one with the higher transaction counts.  A change is written as bbolt
itself does it: new pages at the end, then one meta page, all under the database's own lock; a crash between the
two leaves the old state.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ...errors import StateError
from ...model.network import Lease

PATH = "/run/containers/networks/ipam.db"
MAGIC, VERSION = 0xED0CDAED, 2
BRANCH, LEAF, META, FREELIST = 0x01, 0x02, 0x04, 0x10
BUCKET = 0x01
HEADER, ELEMENT = 16, 16
IDS, LAST = b"ids", b"lastIP"
LIMIT = 16 * 2**20
"""Bytes; a larger file is not Podman's, or not sane."""


@dataclass
class _Bucket:
    """A bucket: values by key, buckets in it by name, and its sequence number."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    buckets: dict[bytes, _Bucket] = field(default_factory=dict)
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class _Meta:
    page_size: int
    root: int
    sequence: int
    pages: int
    transaction: int


def read(path: str = PATH) -> tuple[Lease, ...]:
    """All leases; none when there is no database. Raises StateError."""
    with _opened(path, fcntl.LOCK_SH) as descriptor:
        data = _content(descriptor)
        return tuple(_leases(_tree(data, _meta(data)))) if data else ()


def remove(which: Collection[Lease], path: str = PATH) -> int:
    """Take these leases away, if they are as they were; the number of those that went. Raises StateError."""
    with _opened(path, fcntl.LOCK_EX) as descriptor:
        data = _content(descriptor)
        if not data:
            return 0
        meta = _meta(data)
        tree = _tree(data, meta)
        gone = [lease for lease in which if _drop(tree, lease)]
        if gone:
            _commit(descriptor, meta, tree)
        return len(gone)


@contextlib.contextmanager
def _opened(path: str, lock: int) -> Iterator[int]:
    """The database under its lock, -1 when there is none."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield -1
        return
    except OSError as error:
        raise StateError(f"cannot read Podman's leases of addresses in {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, lock)
        yield descriptor
    except (OSError, struct.error, ValueError, IndexError, RecursionError) as error:
        raise StateError(f"cannot read Podman's leases of addresses in {path}: {error}") from error
    finally:
        os.close(descriptor)


def _content(descriptor: int) -> bytes:
    if descriptor < 0:
        return b""
    size = os.fstat(descriptor).st_size
    if size > LIMIT:
        raise ValueError(f"{size} bytes are too many")
    return os.pread(descriptor, size, 0)


# ---- reading ----------------------------------------------------------------------------------------


def _meta(data: bytes) -> _Meta:
    """The newer of the two good meta pages."""
    page_size = int(struct.unpack_from("<I", data, HEADER + 8)[0])
    found = []
    for start in (HEADER, HEADER + page_size):
        raw = data[start : start + 64]
        magic, version, size, _, root, sequence, _, pages, transaction, checksum = struct.unpack("<IIIIQQQQQQ", raw)
        if (magic, version, checksum) == (MAGIC, VERSION, _fnv(raw[:56])):
            found.append(_Meta(size, root, sequence, pages, transaction))
    if not found:
        raise ValueError("no good meta page")
    return max(found, key=lambda m: m.transaction)


def _fnv(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _tree(data: bytes, meta: _Meta) -> _Bucket:
    bucket = _Bucket(sequence=meta.sequence)
    _fill(bucket, data, meta, _page(data, meta, meta.root))
    return bucket


def _page(data: bytes, meta: _Meta, number: int) -> bytes:
    if not 2 <= number < meta.pages:
        raise ValueError(f"there is no page {number}")
    start = number * meta.page_size
    overflow = int(struct.unpack_from("<I", data, start + 12)[0])
    return data[start : start + (1 + overflow) * meta.page_size]


def _fill(bucket: _Bucket, data: bytes, meta: _Meta, page: bytes) -> None:
    """Add what a page, and the pages below it, hold."""
    _, flags, count, _ = struct.unpack_from("<QHHI", page)
    for at in range(HEADER, HEADER + count * ELEMENT, ELEMENT):
        if flags & BRANCH:
            _fill(bucket, data, meta, _page(data, meta, struct.unpack_from("<IIQ", page, at)[2]))
            continue
        kind, position, key_size, value_size = struct.unpack_from("<IIII", page, at)
        start = at + position
        key, value = page[start : start + key_size], page[start + key_size : start + key_size + value_size]
        if kind & BUCKET:
            root, sequence = struct.unpack_from("<QQ", value)
            inner = bucket.buckets[key] = _Bucket(sequence=sequence)
            _fill(inner, data, meta, _page(data, meta, root) if root else value[16:])
        else:
            bucket.values[key] = value


def _leases(root: _Bucket) -> Iterator[Lease]:
    for network, inside in root.buckets.items():
        for subnet, held in inside.buckets.items():
            if subnet == IDS:
                continue
            for address, holder in held.values.items():
                if address != LAST:
                    text = str(ipaddress.ip_address(address))
                    yield Lease(network.decode(), subnet.decode(), text, holder.decode())


# ---- changing ---------------------------------------------------------------------------------------


def _drop(root: _Bucket, lease: Lease) -> bool:
    network = root.buckets.get(lease.network.encode())
    subnet = network.buckets.get(lease.subnet.encode()) if network else None
    key = ipaddress.ip_address(lease.address).packed
    if network is None or subnet is None or subnet.values.get(key) != lease.holder.encode():
        return False
    del subnet.values[key]
    ids = network.buckets.get(IDS, _Bucket())
    rest = [a for a in json.loads(ids.values.get(lease.holder.encode(), b"[]")) if a != lease.address]
    if rest:
        ids.values[lease.holder.encode()] = json.dumps(rest, separators=(",", ":")).encode()
    else:
        ids.values.pop(lease.holder.encode(), None)
    return True


class _Writer:
    """Lays pages out from `first` on."""

    def __init__(self, first: int, page_size: int) -> None:
        self.next = self.first = first
        self._size = page_size
        self.data = b""

    def add(self, flags: int, count: int, body: bytes) -> int:
        """A page with as many overflow pages as it needs; its number."""
        number = self.next
        pages = -(-(HEADER + len(body)) // self._size)
        page = struct.pack("<QHHI", number, flags, count, pages - 1) + body
        self.data += page.ljust(pages * self._size, b"\0")
        self.next += pages
        return number

    def bucket(self, bucket: _Bucket) -> int:
        """One leaf page for each bucket, the inner ones first; the number of its page."""
        rows = [(key, value, 0) for key, value in bucket.values.items()]
        for key, inner in bucket.buckets.items():
            rows.append((key, struct.pack("<QQ", self.bucket(inner), inner.sequence), BUCKET))
        elements, pairs = b"", b""
        for number, (key, value, kind) in enumerate(sorted(rows)):
            position = (len(rows) - number) * ELEMENT + len(pairs)
            elements += struct.pack("<IIII", kind, position, len(key), len(value))
            pairs += key + value
        return self.add(LEAF, len(rows), elements + pairs)


def _commit(descriptor: int, meta: _Meta, tree: _Bucket) -> None:
    """New pages behind all others, then the older meta page: bbolt's own order."""
    writer = _Writer(meta.pages, meta.page_size)
    root = writer.bucket(tree)
    free = range(2, meta.pages)
    body = struct.pack(f"<{len(free)}Q", *free)
    freelist = writer.add(FREELIST, len(free), body)
    os.pwrite(descriptor, writer.data, meta.pages * meta.page_size)
    os.fsync(descriptor)
    number = (meta.transaction + 1) % 2
    said = struct.pack("<IIII", MAGIC, VERSION, meta.page_size, 0)
    said += struct.pack("<QQQQQ", root, tree.sequence, freelist, writer.next, meta.transaction + 1)
    page = struct.pack("<QHHI", number, META, 0, 0) + said + struct.pack("<Q", _fnv(said))
    os.pwrite(descriptor, page.ljust(meta.page_size, b"\0"), number * meta.page_size)
    os.fsync(descriptor)
