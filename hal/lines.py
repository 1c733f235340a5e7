"""Split a stream of bytes into lines. Pure."""

from __future__ import annotations

from typing import Final

LONGEST_LINE: Final = 65536  # bytes; a longer one is dropped and counted


class LineBuffer:
    """Splits data into lines and keeps an incomplete one.

    With `cut`, the first line is dropped, because its beginning was not received.
    """

    def __init__(self, *, cut: bool = False, longest: int = LONGEST_LINE) -> None:
        self.dropped = 0  # lines that were too long
        self._longest = longest
        self._rest = bytearray()
        self._dropping = cut

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """Return the lines that `data` completes, without empty ones. Lines end with LF or CR LF."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        head = bytes(data[:end])
        if self._dropping:
            self._dropping = False
            _, newline, head = head.partition(b"\n")
            if not newline:
                head = b""
        lines = [line for line in (bytes(self._rest) + head).split(b"\n") if line and line != b"\r"]
        self._rest.clear()
        self._keep(data[end + 1 :])
        return lines

    def _keep(self, data: bytes | bytearray) -> None:
        if self._dropping:
            return
        self._rest += data
        if len(self._rest) > self._longest:
            self._rest.clear()
            self._dropping = True
            self.dropped += 1
