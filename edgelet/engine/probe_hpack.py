"""Decodes HTTP/2 header blocks (RFC 7541), as much as a gRPC health answer needs. Pure.

Fields of the static table have names that say nothing about health, so they keep only their index
as name; the dynamic table is whole, since an answer may refer to it.
"""

from __future__ import annotations

from collections.abc import Iterator

STATIC = 61
MAX_TABLE = 4096
STATUS_FIELDS = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
"""Static entries of `:status` that carry a value (RFC 7541 appendix A)."""

_LENGTHS = (
    "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHFIBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCC"
    "KGJIXPRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRSVVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWW"
    "WWXWWWWWVZ"
)
"""Length of each symbol's Huffman code, A = 5 bits; the code is canonical (RFC 7541 appendix B)."""


class BadBlock(ValueError):
    """Not a header block."""


def _codes() -> dict[tuple[int, int], int]:
    """Symbol by (length, code)."""
    lengths = [ord(c) - ord("A") + 5 for c in _LENGTHS]
    codes: dict[tuple[int, int], int] = {}
    code, last = 0, 5
    for symbol in sorted(range(len(lengths)), key=lambda s: (lengths[s], s)):
        code <<= lengths[symbol] - last
        last = lengths[symbol]
        codes[last, code] = symbol
        code += 1
    return codes


_CODES = _codes()


def huffman(data: bytes) -> bytes:
    """Decode a Huffman-coded string. Raises BadBlock."""
    out = bytearray()
    code = length = 0
    for byte in data:
        for shift in range(7, -1, -1):
            code = code << 1 | (byte >> shift & 1)
            length += 1
            symbol = _CODES.get((length, code))
            if symbol is not None:
                if symbol == 256:
                    raise BadBlock("end of string inside a string")
                out.append(symbol)
                code = length = 0
            elif length >= 30:
                raise BadBlock("no such code")
    return bytes(out)


class Decoder:
    """Decodes the blocks of one connection, in order."""

    def __init__(self) -> None:
        self._table: list[tuple[str, str]] = []

    def decode(self, block: bytes) -> dict[str, str]:
        """Fields by name; those named by the static table as ``#<index>``, `:status` as itself."""
        reader = _Reader(block)
        return dict(field for field in self._fields(reader) if field is not None)

    def _fields(self, reader: _Reader) -> Iterator[tuple[str, str] | None]:
        while reader.left:
            first = reader.peek()
            if first & 0x80:
                yield self._entry(reader.number(7))
            elif first & 0x40:
                field = self._literal(reader, 6)
                self._table.insert(0, field)
                self._evict()
                yield field
            elif first & 0x20:
                reader.number(5)
            else:
                yield self._literal(reader, 4)

    def _literal(self, reader: _Reader, bits: int) -> tuple[str, str]:
        index = reader.number(bits)
        name = self._entry(index)[0] if index else reader.text()
        return name, reader.text()

    def _entry(self, index: int) -> tuple[str, str]:
        if 0 < index <= STATIC:
            return (":status", STATUS_FIELDS[index]) if index in STATUS_FIELDS else (f"#{index}", "")
        if 0 < index - STATIC <= len(self._table):
            return self._table[index - STATIC - 1]
        raise BadBlock(f"no entry {index}")

    def _evict(self) -> None:
        while sum(len(n) + len(v) + 32 for n, v in self._table) > MAX_TABLE:
            self._table.pop()


class _Reader:
    """The integers and strings of a block."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def peek(self) -> int:
        """The next byte."""
        if not self.left:
            raise BadBlock("cut off")
        return self._data[self._at]

    def number(self, bits: int) -> int:
        """An integer with a prefix of `bits` bits."""
        limit = (1 << bits) - 1
        value = self.peek() & limit
        self._at += 1
        if value < limit:
            return value
        for shift in range(0, 28, 7):
            byte = self.peek()
            self._at += 1
            value += (byte & 0x7F) << shift
            if not byte & 0x80:
                return value
        raise BadBlock("a number without end")

    def text(self) -> str:
        """A string, Huffman-coded or not."""
        coded = self.peek() & 0x80
        length = self.number(7)
        if length > self.left:
            raise BadBlock("a string that is cut off")
        raw = self._data[self._at : self._at + length]
        self._at += length
        return (huffman(raw) if coded else raw).decode("utf-8", "replace")
