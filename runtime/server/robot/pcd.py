"""Transforms point clouds in the PCD format, version 0.7. Pure.

The format defines no unit; point clouds of cameras are in metres, poses are in mm. Fields other than positions and
normals are copied unchanged, and so is the VIEWPOINT, the place from which the cloud was taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.geometry import compose
from schema import ErrorKind, MachineError, Pose

CHUNK: Final = 2048  # points transformed per step, which takes about a millisecond
MM: Final = 1000.0  # per metre
HEADER_LIMIT: Final = 16 * 1024  # bytes

_POSITION: Final = ("x", "y", "z")
_NORMAL: Final = ("normal_x", "normal_y", "normal_z")
_CODES: Final[Mapping[tuple[str, int], str]] = {
    ("F", 4): "f",
    ("F", 8): "d",
    **{
        (kind, size): code
        for kind, codes in (("I", "bhiq"), ("U", "BHIQ"))
        for size, code in zip((1, 2, 4, 8), codes, strict=True)
    },
}
Vector: TypeAlias = tuple[float, float, float]
Move: TypeAlias = Callable[[float, float, float], Vector]


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a point cloud."""

    names: tuple[str, ...]  # of the fields
    sizes: tuple[int, ...]  # bytes of one value
    kinds: tuple[str, ...]  # F, I or U
    counts: tuple[int, ...]  # values in each field
    points: int
    data: str  # ascii or binary
    length: int  # bytes of the header

    def indices_of(self, names: Sequence[str]) -> tuple[int, ...] | None:
        """Return the indices of the named fields in the values of a point, or None if a field is missing.

        Raises MachineError (INVALID) if a field has several values.
        """
        indices = []
        for name in names:
            if name not in self.names:
                return None
            index = self.names.index(name)
            if self.counts[index] != 1:
                raise _unreadable(
                    f"field {name} has {self.counts[index]} values per point", "store one value per point"
                )
            indices.append(sum(self.counts[:index]))
        return tuple(indices)


def _unreadable(what: str, remedy: str = "") -> MachineError:
    return MachineError(f"the point cloud cannot be read: {what}", kind=ErrorKind.INVALID, remedy=remedy)


def header(data: bytes) -> Header:
    """Parse the header; raises MachineError: INVALID, or UNSUPPORTED for DATA other than ascii and binary."""
    position, fields = 0, dict[str, list[str]]()
    while "DATA" not in fields:
        line_end = data.find(b"\n", position, HEADER_LIMIT)
        if line_end < 0:
            raise _unreadable("its header has no DATA line", "use a file in the PCD format")
        words = data[position:line_end].decode("ascii", "replace").split()
        position = line_end + 1
        if words and not words[0].startswith("#"):
            fields[words[0]] = words[1:]
    try:
        names = tuple(fields["FIELDS"])
        points = int(fields["POINTS"][0]) if "POINTS" in fields else int(fields["WIDTH"][0]) * int(fields["HEIGHT"][0])
        counts = tuple(int(word) for word in fields.get("COUNT", ["1"] * len(names)))
        sizes, kinds = tuple(int(word) for word in fields["SIZE"]), tuple(fields["TYPE"])
        encoding = fields["DATA"][0]
    except (KeyError, ValueError, IndexError) as error:
        raise _unreadable(f"its header is incomplete ({error})", "use a file in the PCD format, version 0.7") from error
    if not len(names) == len(counts) == len(sizes) == len(kinds) or points < 0 or min(counts, default=1) < 1:
        raise _unreadable("FIELDS, SIZE, TYPE and COUNT do not match, or a number is out of range")
    if encoding not in ("ascii", "binary"):
        raise MachineError(
            f"point clouds with DATA {encoding} are not supported",
            kind=ErrorKind.UNSUPPORTED,
            remedy="use ascii or binary",
        )
    return Header(names, sizes, kinds, counts, points, encoding, position)


def transformed(data: bytes, pose: Pose) -> Iterator[bytes]:
    """Yield the cloud transformed by `pose`, the pose of its frame in another: header, then CHUNK points at a time.

    Raises MachineError: INVALID if it is not a cloud of points in space, UNSUPPORTED for DATA binary_compressed.
    """
    head = header(data)
    position = head.indices_of(_POSITION)
    if position is None:
        raise _unreadable(f"its fields are {' '.join(head.names)}", "add the fields x, y and z")
    normal = head.indices_of(_NORMAL)
    yield data[: head.length]
    turn, shift = _moves(pose)
    if head.data == "ascii":
        yield from _transformed_text(data, head, position, normal, turn, shift)
    else:
        yield from _transformed_binary(data, head, position, normal, turn, shift)


def _moves(pose: Pose) -> tuple[Move, Move]:
    """Return functions that rotate a direction, and that rotate and shift a position in metres."""
    still = Pose(0, 0, 0, pose.o_x, pose.o_y, pose.o_z, pose.theta)
    (a, d, g), (b, e, h), (c, f, i) = ((to.x, to.y, to.z) for to in (compose(still, Pose(*axis)) for axis in _AXES))
    u, v, w = pose.x / MM, pose.y / MM, pose.z / MM

    def turn(x: float, y: float, z: float) -> Vector:
        return a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z

    def shift(x: float, y: float, z: float) -> Vector:
        return a * x + b * y + c * z + u, d * x + e * y + f * z + v, g * x + h * y + i * z + w

    return turn, shift


_AXES: Final = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def _transformed_binary(
    data: bytes, head: Header, position: tuple[int, ...], normal: tuple[int, ...] | None, turn: Move, shift: Move
) -> Iterator[bytes]:
    try:
        codes = [
            _CODES[kind, size] * count for kind, size, count in zip(head.kinds, head.sizes, head.counts, strict=True)
        ]
    except KeyError as error:
        raise _unreadable(f"a field has the unknown type and size {error}") from error
    whole = struct.Struct("<" + "".join(codes))
    if len(data) - head.length < whole.size * head.points:
        raise _unreadable(f"it is too short for {head.points} points of {whole.size} bytes")
    for at in (*position, *(normal or ())):
        if "".join(codes)[at] not in "fd":
            raise _unreadable(
                "its positions or normals are not floating-point numbers", "use TYPE F for x, y, z and the normals"
            )
    moves = [(position, shift), *([(normal, turn)] if normal else [])]
    steps = [(_accessors(whole.format, where), where, move) for where, move in moves]
    points = bytearray(data[head.length : head.length + whole.size * head.points])
    for first in range(0, head.points, CHUNK):
        last = min(head.points, first + CHUNK)
        for offset in range(first * whole.size, last * whole.size, whole.size):
            for accessors, _, move in steps:
                values = move(*(accessor.unpack_from(points, offset + at)[0] for accessor, at in accessors))
                for (accessor, at), value in zip(accessors, values, strict=True):
                    accessor.pack_into(points, offset + at, value)
        yield bytes(points[first * whole.size : last * whole.size])


def _accessors(layout: str, where: Sequence[int]) -> list[tuple[struct.Struct, int]]:
    """Return the struct and offset of values of a point."""
    codes = layout.removeprefix("<")
    return [(struct.Struct("<" + codes[at]), struct.calcsize("<" + codes[:at])) for at in where]


def _transformed_text(
    data: bytes, head: Header, position: tuple[int, ...], normal: tuple[int, ...] | None, turn: Move, shift: Move
) -> Iterator[bytes]:
    lines = data[head.length :].decode("ascii", "replace").splitlines()
    rows = [line.split() for line in lines if line.strip()][: head.points]
    if len(rows) < head.points:
        raise _unreadable(f"it has {len(rows)} lines, but its header says {head.points} points")
    for first in range(0, head.points, CHUNK):
        converted = []
        for row in rows[first : first + CHUNK]:
            try:
                for where, move in ((position, shift), (normal or (), turn)):
                    if where:
                        values = move(*(float(row[at]) for at in where))
                        for at, value in zip(where, values, strict=True):
                            row[at] = f"{value:.9g}"
            except (ValueError, IndexError) as error:
                raise _unreadable(f"the line {' '.join(row)!r} is not a valid point") from error
            converted.append(" ".join(row))
        yield ("\n".join(converted) + "\n").encode("ascii", "replace")
