"""Messages in a file, each preceded by its length as a varint. Pure.

This is the delimiter of the published format (protobuf's `writeDelimitedTo`). A length of zero is invalid here: no
message of a capture file is empty, and ext4 leaves zeros if an append was lost in a power cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from schema import ErrorKind, MachineError

_LONGEST_VARINT = 10  # bytes; protobuf's encoding specification


class Damaged(MachineError):
    """The bytes from `offset` on are not a whole message. `cut` means that the file only ends too early."""

    kind = ErrorKind.INVALID

    def __init__(self, offset: int, reason: str, *, cut: bool = False) -> None:
        super().__init__(f"byte {offset}: {reason}")
        self.offset = offset
        self.cut = cut


def framed(message: bytes) -> bytes:
    """Return a message preceded by its length."""
    rest, head = len(message), bytearray()
    while rest > 0x7F:
        head.append(rest & 0x7F | 0x80)
        rest >>= 7
    head.append(rest)
    return bytes(head) + message


def frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the end offset and the bytes of each message. Raises Damaged at the first one that is not whole."""
    offset, view = 0, memoryview(data)
    while offset < len(data):
        length, begin = _varint(data, offset)
        if length == 0:
            rest = len(data) - offset
            if data.count(0, offset) == rest:
                raise Damaged(
                    offset, f"{rest} zero bytes: the file was extended for data that was never written", cut=True
                )
            raise Damaged(offset, "a message is empty")
        if begin + length > len(data):
            raise Damaged(offset, f"{begin + length - len(data)} bytes of a message are missing", cut=True)
        yield begin + length, bytes(view[begin : begin + length])
        offset = begin + length


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for index in range(_LONGEST_VARINT):
        if offset + index >= len(data):
            raise Damaged(offset, "the length of a message is cut off", cut=True)
        byte = data[offset + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, offset + index + 1
    raise Damaged(offset, "the length of a message is not valid")
