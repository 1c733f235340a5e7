"""Edit a flattened device tree: enable and add nodes. Devicetree Specification 0.4, chapter 5."""

from __future__ import annotations

import struct
from collections.abc import Mapping

BEGIN, END, PROPERTY, NOTHING, FINISHED = 1, 2, 3, 4, 9
HEADER = struct.Struct(">10I")

Properties = Mapping[str, bytes]


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def number(value: int) -> bytes:
    return struct.pack(">I", value)


def changed(tree: bytes, properties: Mapping[str, Properties], children: Mapping[str, Properties]) -> bytes:
    """Return the tree with new `properties` of the nodes at these paths, and new nodes at the paths of `children`."""
    magic, _, structure, strings_at, reserved, version, compatible, cpu, strings_size, _ = HEADER.unpack_from(tree)
    strings = bytearray(tree[strings_at : strings_at + strings_size])
    out = bytearray()
    path: list[str] = []
    offset = structure

    def add(name: str, value: bytes) -> None:
        out.extend(struct.pack(">III", PROPERTY, len(value), len(strings)) + _padded(value))
        strings.extend(text(name))

    while True:
        (token,) = struct.unpack_from(">I", tree, offset)
        begin, offset = offset, offset + 4
        here = "/".join(path)
        if token == BEGIN:
            name = _text(tree, offset)
            offset += len(_padded(text(name)))
            path.append(name)
        elif token == PROPERTY:
            length, name_at = struct.unpack_from(">II", tree, offset)
            offset += 8 + (length + 3) // 4 * 4
            replaced = properties.get(here, {})
            if (name := _text(tree, strings_at + name_at)) in replaced:
                add(name, replaced[name])
                continue
        elif token == END:
            for child, properties_of_child in children.items():
                parent, _, name = child.rpartition("/")
                if parent == here:
                    out.extend(number(BEGIN) + _padded(text(name)))
                    for key, value in properties_of_child.items():
                        add(key, value)
                    out.extend(number(END))
            path.pop()
        out.extend(tree[begin:offset])
        if token == FINISHED:
            break
    reservations = tree[reserved:structure]
    structure = HEADER.size + len(reservations)
    strings_at = structure + len(out)
    header = HEADER.pack(
        magic,
        strings_at + len(strings),
        structure,
        strings_at,
        HEADER.size,
        version,
        compatible,
        cpu,
        len(strings),
        len(out),
    )
    return header + reservations + bytes(out) + bytes(strings)


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)


def _text(tree: bytes, offset: int) -> str:
    return tree[offset : tree.index(b"\0", offset)].decode()
