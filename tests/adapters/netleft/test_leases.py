"""Leases of addresses: read and removed in databases that Podman has made, and in ones written here."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet import errors
from edgelet.adapters.netleft import leases
from edgelet.model.network import Lease

MADE_BY_PODMAN = (
    "c-rmUze>YE9Ki9*pH`5HnVm`pH{0Z{N7Btv!9hWA5QoIOg5W=>i-RxV;Dh)UzJ~A6XV8RPiUx{<OIyAlIDWbOyW>Ze-z7wdTIk~Zvp4svji~N-#BW^}w"
    "_NmHJotJYWxbC~000000DzU_{Zao1t@HiX`OWpaN6%+_`edJs0ssI20I+(RdOji*000000Bo$FwGIFP00000Hcz;y|LYZi>U;iv*?MJrbNzQwuM@nKEs"
    "2L&I*f<$NRF4?)BmxW(05}Ty8gMS{~=KA+rALKQdTEMX0}lJTIoEMS{pr8iL~W`LaIb1<J_j!7AB61NvaAvHOWM#Sz6?JdYjLlj!&yQ-I&?(33-d{$W"
    "3OaZ2ukna?qqh4z75X000000IRFhDv>=`B6nSUd@y(UeMq7J00000SYyrq{3G|yzIk&WkQx9000000000000M^DgA5cAR"
)
"""`ipam.db` of Podman 4.3.1 with one pod: zlib, base 85."""
HOLDER = "33e51d28eb35c35a7255d5f312ee51b231314ae7eebd00b973befd192787ba5f"
ONLY = Lease("podman", "10.87.0.0/24", "10.87.0.2", HOLDER)


@pytest.fixture
def database(tmp_path: Path) -> str:
    """What Podman has written."""
    path = tmp_path / "ipam.db"
    path.write_bytes(zlib.decompress(base64.b85decode(MADE_BY_PODMAN)))
    return str(path)


def test_a_database_of_podman_is_read(database: str) -> None:
    assert leases.read(database) == (ONLY,)


def test_no_database_is_no_lease(tmp_path: Path) -> None:
    assert leases.read(str(tmp_path / "none")) == ()
    assert leases.remove([ONLY], str(tmp_path / "none")) == 0


def test_a_lease_goes_once_and_the_rest_of_the_file_stays(database: str) -> None:
    assert leases.remove([ONLY], database) == 1
    assert leases.read(database) == ()
    data = Path(database).read_bytes()
    network = leases._tree(data, leases._meta(data)).buckets[b"podman"]
    assert network.buckets[b"10.87.0.0/24"].values == {b"lastIP": bytes([10, 87, 0, 2])}
    assert network.buckets[b"ids"].values == {}
    assert leases.remove([ONLY], database) == 0


@pytest.mark.parametrize("other", ["10.87.0.3", "fd00::2"])
def test_a_lease_that_is_not_there_changes_nothing(database: str, other: str) -> None:
    before = Path(database).read_bytes()
    assert leases.remove([Lease(ONLY.network, ONLY.subnet, other, HOLDER)], database) == 0
    assert leases.remove([Lease(ONLY.network, ONLY.subnet, ONLY.address, "0" * 64)], database) == 0
    assert Path(database).read_bytes() == before


def test_a_crash_before_the_last_write_leaves_the_old_state(database: str) -> None:
    before = Path(database).read_bytes()
    leases.remove([ONLY], database)
    after = bytearray(Path(database).read_bytes())
    after[: 2 * 4096] = before[: 2 * 4096]
    Path(database).write_bytes(after)
    assert leases.read(database) == (ONLY,)


@given(st.binary(max_size=9000))
def test_any_bytes_are_read_or_refused_with_the_name_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    path = tmp_path_factory.mktemp("l") / "ipam.db"
    path.write_bytes(raw)
    try:
        assert leases.read(str(path)) == ()
    except errors.StateError as error:
        assert str(path) in str(error)


@given(st.integers(0, 8191), st.binary(min_size=1, max_size=4))
def test_damage_is_refused_never_a_crash(tmp_path_factory: pytest.TempPathFactory, at: int, bad: bytes) -> None:
    raw = bytearray(zlib.decompress(base64.b85decode(MADE_BY_PODMAN)))
    raw[at : at + len(bad)] = bad
    path = tmp_path_factory.mktemp("l") / "ipam.db"
    path.write_bytes(raw)
    try:
        leases.remove([ONLY], str(path))
    except errors.StateError as error:
        assert str(path) in str(error)


def _filled(path: Path, count: int) -> list[Lease]:
    """A database with many leases, written here from the one of Podman."""
    path.write_bytes(zlib.decompress(base64.b85decode(MADE_BY_PODMAN)))
    data = path.read_bytes()
    meta = leases._meta(data)
    tree = leases._tree(data, meta)
    held = tree.buckets[b"podman"].buckets[b"10.87.0.0/24"]
    made = []
    for number in range(3, 3 + count):
        holder = f"{number:064x}"
        held.values[bytes([10, 87, number >> 8, number & 255])] = holder.encode()
        tree.buckets[b"podman"].buckets[b"ids"].values[holder.encode()] = f'["10.87.0.{number}"]'.encode()
        made.append(Lease("podman", "10.87.0.0/24", f"10.87.{number >> 8}.{number & 255}", holder))
    with open(path, "r+b") as file:
        leases._commit(file.fileno(), meta, tree)
    return made


def test_many_leases_take_more_than_one_page(tmp_path: Path) -> None:
    path = tmp_path / "ipam.db"
    made = _filled(path, 250)
    assert set(leases.read(str(path))) == {ONLY, *made}
    assert leases.remove(made[:200], str(path)) == 200
    assert set(leases.read(str(path))) == {ONLY, *made[200:]}


def test_the_pages_of_the_old_state_are_free_again(tmp_path: Path) -> None:
    path = tmp_path / "ipam.db"
    made = _filled(path, 20)
    leases.remove(made, str(path))
    data = path.read_bytes()
    meta = leases._meta(data)
    start = leases.HEADER + 24 + 16
    newest = (meta.transaction % 2) * meta.page_size
    (freelist,) = struct.unpack_from("<Q", data, newest + start - 8)
    _, flags, count, _ = struct.unpack_from("<QHHI", data, freelist * meta.page_size)
    assert flags == leases.FREELIST
    assert meta.root not in struct.unpack_from(f"<{count}Q", data, freelist * meta.page_size + leases.HEADER)
