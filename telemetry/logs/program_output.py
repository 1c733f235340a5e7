"""Output of a program, cut into lines with a bounded length. Pure."""

from __future__ import annotations

from typing import Final

from telemetry.logs.entry import LEFT_OUT

MAX_LINE: Final = 16 * 1024  # bytes; the rest of a longer line is dropped


class Lines:
    """Collects bytes and returns complete lines. It never holds more than MAX_LINE bytes; cut lines end with `…`."""

    def __init__(self) -> None:
        self._partial = b""
        self._dropping = False

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes. Carriage returns end a line, too: they show progress."""
        *complete, partial = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        lines = []
        for piece in complete:
            line, self._partial = self._partial + piece, b""
            if not self._dropping:
                lines.append(_text(line))
            self._dropping = False
        if not self._dropping:
            self._partial += partial
            if len(self._partial) > MAX_LINE:
                lines.append(_text(self._partial))
                self._partial, self._dropping = b"", True
        return [line for line in lines if line]

    def rest(self) -> list[str]:
        """Return the last line, which no line end completes."""
        line, self._partial = self._partial, b""
        return [_text(line)] if line else []


def _text(line: bytes) -> str:
    return line[:MAX_LINE].decode("utf-8", "replace") + (LEFT_OUT if len(line) > MAX_LINE else "")
