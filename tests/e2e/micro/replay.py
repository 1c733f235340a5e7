"""Prints what the core answers to recorded bytes: `replay.py FILE`, on CPython and MicroPython.

Each line of FILE is what a peer sends, in hexadecimal digits; the output has the answers in the same form.
"""

import sys

from micro.engine.rows import row_of
from micro.wire.bounds import Bounds
from micro.wire.http2 import Budget, Connection
from micro.wire.protobuf import decode, encode
from micro.wire.web import WebConnection

STRUCT = row_of("generic", "DoCommand")[2]


def answers(data: bytes) -> bytes:
    """Return the answers to a peer, whose calls are echoed."""
    bounds = Bounds()
    out = bytearray()
    kind = Connection if data[:3] == b"PRI" else WebConnection
    connection = kind(bounds, Budget(bounds.held), 1)
    for at in range(0, len(data), 512):
        connection.receive(data[at : at + 512], 1 + at)
        while connection.ready:
            stream = connection.ready.pop(0)
            connection.answer(stream, stream.body)
        while True:
            part = connection.output()
            if not part:
                break
            out += part
    out += connection.over.encode()
    return bytes(out)


def main() -> None:
    """Answer every line."""
    with open(sys.argv[1]) as file:
        for line in file:
            print(answers(bytes.fromhex(line.strip())).hex() or "")  # MicroPython: bytes if there are none
    value = {"command": {"a": [1, 2.5, None, True, {"b": "d"}], "c": -1}}
    data = encode(STRUCT, value)
    print(data.hex(), repr(decode(STRUCT, data)["command"]["a"]))


main()
