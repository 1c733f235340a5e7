"""Serialization of messages with large lists in worker threads, in short steps.

A call into protobuf's C library holds the interpreter lock until it returns: 80 ms for a list of eight configurations
of 4 MiB. Serializing each list entry in a separate call lets other threads run in between.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_LENGTH_DELIMITED: Final = 2  # the wire type of messages


def serialize_in_steps(message: Any) -> bytes:
    """Serialize `message` and clear its repeated message fields.

    The order of fields differs from that of SerializeToString, which protobuf allows; parsing gives an equal message.
    """
    lists = _lists_of_messages(message.DESCRIPTOR)
    if not lists:
        data: bytes = message.SerializeToString()
        return data
    parts: list[bytes] = []
    for name, tag in lists:
        for entry in getattr(message, name):
            content = entry.SerializeToString()
            parts += (tag, _varint(len(content)), content)
        message.ClearField(name)
    return b"".join([message.SerializeToString(), *parts])


@lru_cache(maxsize=1000)
def _lists_of_messages(descriptor: Descriptor) -> tuple[tuple[str, bytes], ...]:
    """Return the names and tags of the repeated message fields, without maps."""
    return tuple(
        (field.name, _varint(field.number << 3 | _LENGTH_DELIMITED))
        for field in descriptor.fields
        if field.is_repeated and field.message_type is not None and not field.message_type.GetOptions().map_entry
    )


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
