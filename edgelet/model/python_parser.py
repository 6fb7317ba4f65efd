"""PyYAML's parser in Python, made to treat tabs and byte order marks as the C parser (and Go's) does.

Only for machines where PyYAML came without its C extension. The C parser lets a tab stand wherever
blanks may stand but in indentation, where the Python one refuses most of them, and a byte order mark
at the start of any line.
"""

from __future__ import annotations

from typing import Any

import yaml

BYTE_ORDER_MARK = "\ufeff"
_BREAKS = "\r\n\x85\u2028\u2029"
_ENDS = "\0 \t" + _BREAKS


class PythonParser(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser):
    """Text to parse events, as the C parser gives them."""

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)

    def _is_blank(self) -> bool:
        """A tab counts where no indentation can begin."""
        char = self.peek()
        return bool(char == " " or (char == "\t" and (self.flow_level or not self.allow_simple_key)))

    def _line_break(self) -> str:
        return str(self.scan_line_break())  # type: ignore[no-untyped-call]

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments, line breaks, and a byte order mark at the start of a line."""
        while True:
            if self.peek() == BYTE_ORDER_MARK and self.column == 0:
                self.forward()
                self.column += 1  # as the C parser counts it
            while self._is_blank():
                self.forward()
            if self.peek() == "#":
                while self.peek() not in "\0" + _BREAKS:
                    self.forward()
            if not self._line_break():
                return
            if not self.flow_level:
                self.allow_simple_key = True

    def scan_plain_spaces(self, indent: int, start_mark: Any) -> Any:
        """The white space inside an unquoted text, folded; None at the end of a document."""
        length = 0
        while self.peek(length) in " \t":
            length += 1
        blanks = self.prefix(length)
        self.forward(length)
        if self.peek() not in _BREAKS:
            return [blanks] if blanks else []
        first = self._line_break()
        self.allow_simple_key = True
        if self._at_document_mark():
            return None
        more = self._more_breaks(indent, start_mark)
        if more is None:
            return None
        head = [first] if first != "\n" else [] if more else [" "]
        return head + more

    def _more_breaks(self, indent: int, start_mark: Any) -> list[str] | None:
        breaks: list[str] = []
        while self.peek() in " \t" + _BREAKS:
            if self.peek() == "\t" and self.column < indent:
                raise yaml.scanner.ScannerError(
                    "while scanning a plain scalar",
                    start_mark,
                    "found a tab character that violates indentation",
                    self.get_mark(),
                )
            if self.peek() in " \t":
                self.forward()
                continue
            breaks.append(self._line_break())
            if self._at_document_mark():
                return None
        return breaks

    def _at_document_mark(self) -> bool:
        return self.prefix(3) in ("---", "...") and self.peek(3) in _ENDS

    def scan_block_scalar_indicators(self, start_mark: Any) -> tuple[bool | None, int | None]:
        """`+` or `-`, and a digit, in either order; what follows is the ignored line's business."""
        keep, indent = None, None
        for _ in range(2):
            char = self.peek()
            if char in "+-" and keep is None:
                keep = char == "+"
            elif char in "123456789" and indent is None:
                indent = int(char)
            else:
                break
            self.forward()
        return keep, indent

    def scan_block_scalar_ignored_line(self, start_mark: Any) -> None:
        """What may follow `|` or `>`: blanks and a comment."""
        while self.peek() in " \t":
            self.forward()
        super().scan_block_scalar_ignored_line(start_mark)

    def scan_block_scalar_indentation(self) -> Any:
        """Up to the first line that is not empty: what it is indented by is the text's indentation."""
        start = self.get_mark()
        found = super().scan_block_scalar_indentation()
        self._refuse_tab(start)
        return found

    def scan_block_scalar_breaks(self, indent: int) -> Any:
        """Empty lines in a text, up to `indent` of the next one."""
        start = self.get_mark()
        found = super().scan_block_scalar_breaks(indent)
        if self.column < indent:
            self._refuse_tab(start)
        return found

    def _refuse_tab(self, start: Any) -> None:
        if self.peek() == "\t":
            raise yaml.scanner.ScannerError(
                "while scanning a block scalar",
                start,
                "found a tab character where an indentation space is expected",
                self.get_mark(),
            )
