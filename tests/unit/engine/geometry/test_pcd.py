"""Point clouds in the PCD format: moving them changes the positions and nothing else."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.geometry.frames import compose
from runtime.server.robot.pcd import CHUNK, header, transformed
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import Pose

QUARTER = Pose(100, 0, 0, 0, 0, 1, 90)  # the x axis of the frame points along y; shifted by 0.1 m


def cloud(
    fields: str, sizes: str, kinds: str, data: bytes, *, count: str = "", form: str = "binary", points: int = 1
) -> bytes:
    lines = [
        "# .PCD v0.7 - Point Cloud Data file format",
        "VERSION 0.7",
        f"FIELDS {fields}",
        f"SIZE {sizes}",
        f"TYPE {kinds}",
    ]
    lines += [f"COUNT {count}"] if count else []
    lines += [f"WIDTH {points}", "HEIGHT 1", "VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {points}", f"DATA {form}"]
    return "\n".join(lines).encode() + b"\n" + data


def after(data: bytes, pose: Pose) -> tuple[bytes, bytes]:
    """Return the header and the points of the moved cloud."""
    result = b"".join(transformed(data, pose))
    length = header(result).length
    return result[:length], result[length:]


def test_places_are_turned_and_shifted_in_metres() -> None:
    data = cloud("x y z rgb", "4 4 4 4", "F F F U", struct.pack("<fffI", 1, 2, 3, 0x7FC00001))
    head, points = after(data, QUARTER)
    assert data.startswith(head)
    x, y, z, rgb = struct.unpack("<fffI", points)
    assert (x, y, z) == pytest.approx((-1.9, 1, 3), abs=1e-6)
    assert rgb == 0x7FC00001  # as a float, this bit pattern is a NaN


def test_fields_may_stand_anywhere_and_have_any_width() -> None:
    data = cloud(
        "label z descriptor y x",
        "1 8 2 8 8",
        "U F I F F",
        struct.pack("<Bd3hdd", 7, 3, -1, 2, 3, 2, 1),
        count="1 1 3 1 1",
    )
    _, points = after(data, QUARTER)
    assert struct.unpack("<Bd3hdd", points) == pytest.approx((7, 3, -1, 2, 3, 1, -1.9))


def test_normals_are_turned_and_not_shifted() -> None:
    data = cloud("x y z normal_x normal_y normal_z", "4 4 4 4 4 4", "F F F F F F", struct.pack("<6f", 0, 0, 0, 1, 0, 0))
    assert struct.unpack("<6f", after(data, QUARTER)[1]) == pytest.approx((0.1, 0, 0, 0, 1, 0), abs=1e-6)


def test_text_stays_text() -> None:
    data = cloud("x y z intensity", "4 4 4 4", "F F F F", b"1 2 3 0.25\n\n4 5 6 nan\n", form="ascii", points=2)
    head, points = after(data, QUARTER)
    assert head.endswith(b"DATA ascii\n")
    rows = [line.split() for line in points.decode().splitlines()]
    assert [[float(word) for word in row[:3]] for row in rows] == [
        pytest.approx([-1.9, 1, 3]),
        pytest.approx([-4.9, 4, 6]),
    ]
    assert [row[3] for row in rows] == ["0.25", "nan"]


@given(
    st.lists(st.tuples(*[st.floats(-5, 5, width=32)] * 3), max_size=8),
    st.tuples(*[st.floats(-1000, 1000)] * 3),
    st.tuples(*[st.floats(-1, 1)] * 2),
    st.floats(-180, 180),
)
def test_every_point_goes_where_its_pose_goes(
    points: list[tuple[float, ...]], at: Sequence[float], towards: Sequence[float], theta: float
) -> None:
    pose = Pose(*at, towards[0], towards[1], 0.5, theta)
    data = cloud(
        "x y z", "8 8 8", "F F F", b"".join(struct.pack("<ddd", *point) for point in points), points=len(points)
    )
    results = list(struct.iter_unpack("<ddd", after(data, pose)[1]))
    for point, place in zip(points, results, strict=True):
        expected = compose(pose, Pose(*(1000 * value for value in point)))
        assert [1000 * value for value in place] == pytest.approx([expected.x, expected.y, expected.z], abs=1e-6)


def test_a_large_cloud_comes_in_chunks() -> None:
    count = CHUNK * 2 + 5
    data = cloud("x y z", "4 4 4", "F F F", struct.pack("<fff", 1, 2, 3) * count, points=count)
    chunks = list(transformed(data, Pose(0, 0, 1000)))
    assert [len(chunk) for chunk in chunks[1:]] == [CHUNK * 12, CHUNK * 12, 5 * 12]
    assert b"".join(chunks[1:]) == struct.pack("<fff", 1, 2, 4) * count


GOOD = struct.pack("<fff", 1, 2, 3)


@pytest.mark.parametrize(
    ("data", "words", "kind"),
    [
        (b"", "no DATA line", ErrorKind.INVALID),
        (b"nonsense\n" * 5000, "no DATA line", ErrorKind.INVALID),
        (b"DATA binary\n", "incomplete", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "F F F", GOOD, form="binary_compressed"), "binary_compressed", ErrorKind.UNSUPPORTED),
        (cloud("x y", "4 4", "F F", GOOD), "add the fields x, y and z", ErrorKind.INVALID),
        (cloud("x y z", "4 4", "F F F", GOOD), "do not match", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "F F F", GOOD[:-1]), "too short for 1 points of 12 bytes", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "F F F", GOOD, points=-1), "do not match", ErrorKind.INVALID),
        (cloud("x y z", "3 4 4", "F F F", GOOD), "type and size", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "I F F", GOOD), "TYPE F", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "F F F", GOOD * 2, count="2 1 1"), "field x has 2 values", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "F F F", GOOD, count="0 1 1"), "do not match", ErrorKind.INVALID),
        (
            cloud("x y z", "4 4 4", "F F F", b"1 2 3\n", form="ascii", points=2),
            "1 lines, but its header says 2",
            ErrorKind.INVALID,
        ),
        (cloud("x y z", "4 4 4", "F F F", b"1 2\n", form="ascii"), "'1 2' is not a valid point", ErrorKind.INVALID),
        (cloud("x y z", "4 4 4", "F F F", b"1 b 2\n", form="ascii"), "'1 b 2' is not a valid point", ErrorKind.INVALID),
    ],
)
def test_invalid_point_clouds_are_refused(data: bytes, words: str, kind: ErrorKind) -> None:
    with pytest.raises(MachineError) as caught:
        b"".join(transformed(data, Pose()))
    assert words in f"{caught.value.message}: {caught.value.remedy}"
    assert caught.value.kind is kind


@given(st.binary(max_size=300))
def test_nonsense_never_breaks_it(data: bytes) -> None:
    for text in (data, b"FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS 2\nDATA ascii\n" + data):
        try:
            b"".join(transformed(text, Pose()))
        except MachineError:
            pass
