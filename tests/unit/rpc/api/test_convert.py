"""Converters accept valid values and reject others with the path to the value."""

import enum
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NewType

import msgspec
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from engine.components.media.camera import CameraProperties, IntrinsicParameters
from engine.components.motion.kinematics import Kinematics
from rpc.api.convert import values
from rpc.api.convert.converters import (
    fill_duration,
    fill_resource_name,
    fill_timestamp,
    read_duration,
    read_resource_name,
    read_timestamp,
)
from rpc.api.convert.decode import keywords_reader, message_reader
from rpc.api.convert.encode import filler, message_fill
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import Hint, Slot, parse, signature_of
from rpc.api.convert.scalars import check_of
from rpc.api.messages import common, load
from schema.space.geometry import (
    Geometry,
    GeoPoint,
    Orientation,
    RectangularPrism,
    Sphere,
    Vector3,
)
from tests.unit.rpc.api.samples import wire

PB = common()


def test_absent_fields_are_none():
    cls = load("component.camera.v1.camera_pb2").GetPropertiesResponse
    message = cls()
    message_fill(cls.DESCRIPTOR)(message, CameraProperties(intrinsic_parameters=IntrinsicParameters()))
    assert message.HasField("intrinsic_parameters")
    assert not message.HasField("frame_rate")
    back = message_reader(cls.DESCRIPTOR, Hint(CameraProperties))(wire(message))
    assert back.frame_rate is None
    assert back.distortion_parameters is None
    assert back.intrinsic_parameters == IntrinsicParameters()


def test_typed_objects_that_clients_know():
    struct = Struct()
    values.fill_struct(
        struct, {"v": Vector3(1, 2, 3), "p": GeoPoint(4, 5), "o": Orientation(0, 1, 0, 6), "b": b"\xff", "i": 3}
    )
    assert values.read_struct(struct) == {
        "v": {"x": 1.0, "y": 2.0, "z": 3.0, "_type": "vector3"},
        "p": {"lat": 4.0, "lng": 5.0, "_type": "geopoint"},
        "o": {"ox": 0.0, "oy": 1.0, "oz": 0.0, "theta": 6.0, "_type": "orientation_vector_degrees"},
        "b": "/w==",
        "i": 3.0,
    }


def test_typed_objects_are_those_of_the_official_client():
    script = (
        "import json; from viam.utils import sensor_readings_value_to_native as f;"
        "from google.protobuf.struct_pb2 import Struct; s = Struct(); s.ParseFromString(bytes.fromhex('{data}'));"
        "r = f(s.fields); print(type(r['v']).__name__, r['v'].z, type(r['p']).__name__, r['p'].longitude,"
        "type(r['o']).__name__, r['o'].theta)"
    )
    struct = Struct()
    values.fill_struct(struct, {"v": Vector3(1, 2, 3), "p": GeoPoint(4, 5), "o": Orientation(0, 1, 0, 6)})
    done = subprocess.run(
        [sys.executable, "-c", script.format(data=struct.SerializeToString().hex())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["Vector3", "3.0", "GeoPoint", "5.0", "Orientation", "6.0"]


class Number:
    """A scalar like those of numeric libraries."""

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class Array:
    def tolist(self):
        return [1.0, 2.0]


class Word(enum.StrEnum):
    A = "a"


@dataclass
class Thing:
    x: int = 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Number(1.5), 1.5),
        (Array(), [1.0, 2.0]),
        (Word.A, "a"),
        ((1, 2), [1.0, 2.0]),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"),
        (timedelta(minutes=1), 60.0),
        ({}, {}),
        ([], []),
        (2**53, 2.0**53),
    ],
)
def test_free_values(value, expected):
    struct = Struct()
    values.fill_struct(struct, {"k": value})
    assert values.read_struct(wire(struct)) == {"k": expected}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [1, object]}, "a.1: expected a number, text, bool, None, bytes, list or mapping, got <class 'object'>"),
        ({"a": {1: 2}}, "a: expected a mapping with text keys, got 1 (int)"),
        ({"a": {"b": {1, 2}}}, "a.b: expected a number"),
        ({"a": 10**400}, "a: expected a number that a double can hold"),
        ({"a": "\ud800"}, "a: expected valid text"),
        ({"a": Thing()}, "a: expected a number"),
        (
            {"password": object()},
            "password: expected a number, text, bool, None, bytes, list or mapping, got object (not",
        ),
        ([1], "expected a mapping, got [1] (list)"),
    ],
)
def test_free_values_that_do_not_fit(value, said):
    with pytest.raises(FitError) as caught:
        values.fill_struct(Struct(), value)
    assert str(caught.value).startswith(said)


def check(name, value):
    """Check `value` for a field of the scalar kind `name`; return the converted value."""
    fields = {
        "double": PB.Vector3.DESCRIPTOR.fields_by_name["x"],
        "float": load("component.board.v1.board_pb2").ReadAnalogReaderResponse.DESCRIPTOR.fields_by_name["min_range"],
        "int32": load("component.board.v1.board_pb2").ReadAnalogReaderResponse.DESCRIPTOR.fields_by_name["value"],
        "uint32": load("component.servo.v1.servo_pb2").MoveRequest.DESCRIPTOR.fields_by_name["angle_deg"],
        "bool": load("component.board.v1.board_pb2").SetGPIORequest.DESCRIPTOR.fields_by_name["high"],
        "string": PB.ResourceName.DESCRIPTOR.fields_by_name["name"],
        "bytes": PB.Mesh.DESCRIPTOR.fields_by_name["mesh"],
        "enum": load("component.board.v1.board_pb2").SetPowerModeRequest.DESCRIPTOR.fields_by_name["power_mode"],
    }
    return check_of(fields[name])(value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("double", 1, 1.0),
        ("double", Number(2.5), 2.5),
        ("float", float("inf"), float("inf")),
        ("int32", 90.0, 90),
        ("int32", Number(7), 7),
        ("int32", -(2**31), -(2**31)),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("bool", Number(True), True),
        ("string", "ü", "ü"),
        ("bytes", bytearray(b"a"), b"a"),
        ("bytes", memoryview(b"a"), b"a"),
        ("enum", 1, 1),
        ("enum", "normal", 1),
        ("enum", "POWER_MODE_OFFLINE_DEEP", 2),
    ],
)
def test_scalars_that_fit(kind, value, expected):
    result = check(kind, value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("double", "1", "a number"),
        ("double", True, "a number"),
        ("double", None, "a number"),
        ("double", 10**400, "a number that a double can hold"),
        ("float", 1e39, "a number that 32 bits can hold"),
        ("int32", 1.5, "a whole number"),
        ("int32", float("nan"), "a whole number"),
        ("int32", True, "a whole number"),
        ("int32", 2**31, "a whole number from -2147483648 to 2147483647"),
        ("uint32", -1, "a whole number from 0 to 4294967295"),
        ("bool", 1, "true or false"),
        ("string", b"x", "text"),
        ("string", "\ud800", "valid text"),
        ("bytes", "x", "bytes"),
        ("enum", 9, "one of UNSPECIFIED, NORMAL, OFFLINE_DEEP"),
        ("enum", "fast", "one of UNSPECIFIED, NORMAL, OFFLINE_DEEP"),
        ("enum", True, "one of UNSPECIFIED, NORMAL, OFFLINE_DEEP"),
    ],
)
def test_scalars_that_do_not_fit(kind, value, said):
    with pytest.raises(FitError) as caught:
        check(kind, value)
    assert str(caught.value).startswith(f"expected {said}, got ")


@given(st.integers() | st.floats(allow_nan=False))
def test_whole_numbers_are_exact_or_refused(value):
    try:
        result = check("int32", value)
    except FitError:
        assert not (-(2**31) <= value < 2**31) or value != int(value)
    else:
        assert result == value


@pytest.mark.parametrize(
    ("message", "value", "said"),
    [
        ("Geometry", {"box": {"dims_mm": {"x": "1"}}}, "box.dims_mm.x: expected a number, got '1' (str)"),
        ("Geometry", Geometry(sphere=Sphere(1.0), box=RectangularPrism()), "expected at most one of"),
        ("Geometry", {"sphere": {}, "capsule": {}}, "expected at most one of"),
        ("Geometry", {"ball": {}}, "expected one of the fields center, sphere, box"),
        ("Geometry", 3, "expected a Geometry (center, sphere, box, capsule, mesh, pointcloud, label), got 3 (int)"),
        ("Geometry", PB.Pose(), "expected a viam.common.v1.Geometry"),
        ("KinematicModel", {"links": "abc"}, "links: expected a sequence, got 'abc' (str)"),
        (
            "KinematicModel",
            {"links": [{}, {"pose": {"translation": 1}}]},
            "links.1.pose.translation: expected a Vector3",
        ),
        ("KinematicModel", {"output_frames": ["a", 1]}, "output_frames.1: expected text, got 1 (int)"),
    ],
)
def test_messages_that_do_not_fit(message, value, said):
    cls = getattr(PB, message)
    with pytest.raises(FitError) as caught:
        message_fill(cls.DESCRIPTOR)(cls(), value)
    assert str(caught.value).startswith(said)


def test_maps_that_do_not_fit():
    cls = PB.GetKinematicsResponse
    for value, said in (
        ({"meshes_by_urdf_filepath": [1]}, "meshes_by_urdf_filepath: expected a mapping"),
        ({"meshes_by_urdf_filepath": {"a": {"mesh": "x"}}}, "meshes_by_urdf_filepath.a.mesh: expected bytes"),
        ({"meshes_by_urdf_filepath": {1: {}}}, "meshes_by_urdf_filepath: expected text, got 1"),
    ):
        with pytest.raises(FitError) as caught:
            message_fill(cls.DESCRIPTOR)(cls(), value)
        assert str(caught.value).startswith(said)


def test_none_is_unset_only_where_the_class_allows_it():
    @dataclass
    class Loose:
        x: float | None = None

    @dataclass
    class Strict:
        x: float = 0.0

    fill = filler(PB.Vector3.DESCRIPTOR).fill
    fill(PB.Vector3(), Loose())
    with pytest.raises(FitError, match="x: expected a number, got None"):
        fill(PB.Vector3(), Strict(None))


def test_msgspec_structs_are_as_good():
    class Place(msgspec.Struct):
        latitude: float
        longitude: float = 7.0

    message = PB.GeoPoint()
    message_fill(PB.GeoPoint.DESCRIPTOR)(message, Place(1.0, 2.0))
    assert (message.latitude, message.longitude) == (1.0, 2.0)
    assert message_reader(PB.GeoPoint.DESCRIPTOR, Hint(Place))(message) == Place(1.0, 2.0)


def test_message_itself_is_taken_as_it_is():
    message = PB.GeoPoint()
    message_fill(PB.GeoPoint.DESCRIPTOR)(message, PB.GeoPoint(latitude=3))
    assert message.latitude == 3


def test_message_with_one_field_may_stand_for_it():
    cls = load("component.arm.v1.arm_pb2").JointPositions
    message = cls()
    message_fill(cls.DESCRIPTOR)(message, [1, 2.5])
    assert list(message.values) == [1.0, 2.5]
    assert message_reader(cls.DESCRIPTOR, parse(Sequence[float]))(message) == [1.0, 2.5]
    assert message_reader(cls.DESCRIPTOR)(message) == {"values": [1.0, 2.5]}


def test_recursive_types():
    trace = load("opentelemetry.proto.common.v1.common_pb2")
    value = {"array_value": {"values": [{"string_value": "a"}, {"array_value": {"values": [{"int_value": 1}]}}]}}
    message = trace.AnyValue()
    message_fill(trace.AnyValue.DESCRIPTOR)(message, value)
    assert message_reader(trace.AnyValue.DESCRIPTOR)(wire(message)) == value


def test_absent_fields_take_what_the_hint_gives_them():
    request = load("component.base.v1.base_pb2").SetPowerRequest
    fields = {f.name: f for f in request.DESCRIPTOR.fields}
    read = keywords_reader(fields, {"linear": Slot(Hint(Vector3), required=True)})
    assert read(request()) == {"linear": Vector3()}
    read = keywords_reader(fields, {"linear": Slot(Hint(Vector3), required=False)})
    assert read(request()) == {}
    read = keywords_reader(fields, {"linear": Slot(Hint(Vector3, optional=True), required=True)})
    assert read(request()) == {"linear": None}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (datetime(2026, 1, 1), "a datetime with a time zone"),
        ("yesterday", "a time such as"),
        (1.0, "a datetime with a time zone"),
    ],
)
def test_times_that_do_not_fit(value, said):
    with pytest.raises(FitError, match=said):
        fill_timestamp(Timestamp(), value)


def test_times_as_text():
    message = Timestamp()
    fill_timestamp(message, "2026-01-31T12:00:00.5Z")
    assert read_timestamp(message) == datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=UTC)
    fill_timestamp(message, datetime(1969, 12, 31, 23, 0, 0, 1, tzinfo=timezone(timedelta(hours=-1))))
    assert (message.seconds, message.nanos) == (0, 1000)


def test_times_that_no_datetime_can_hold():
    with pytest.raises(FitError, match="between the years 1 and 9999"):
        read_timestamp(Timestamp(seconds=10**15))
    with pytest.raises(FitError, match="that a timedelta can hold"):
        read_duration(Duration(seconds=10**18))


@pytest.mark.parametrize(
    ("value", "said"),
    [("1s", "a timedelta or seconds"), (True, "a timedelta"), (1e300, "that a Duration"), (timedelta.max, "10,000")],
)
def test_durations_that_do_not_fit(value, said):
    with pytest.raises(FitError, match=said):
        fill_duration(Duration(), value)


@pytest.mark.parametrize("value", ["left", "a:b/c", 3, {"nam": "x"}, {"name": 3}, ""])
def test_resource_names_that_do_not_fit(value):
    with pytest.raises(FitError):
        fill_resource_name(PB.ResourceName(), value)


def test_an_invalid_resource_name_from_a_peer():
    with pytest.raises(FitError, match="a resource name such as"):
        read_resource_name(PB.ResourceName(namespace="rdk", type="component", subtype="motor"))


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (float, Hint(float)),
        (float | None, Hint(float, optional=True)),
        (list[int], Hint(item=Hint(int))),
        (tuple[int, ...], Hint(item=Hint(int))),
        (Sequence[Sequence[float]], Hint(item=Hint(item=Hint(float)))),
        (Mapping[str, float], Hint(value=Hint(float))),
        (Mapping[str, Any] | None, Hint(value=Hint(), optional=True)),
        (dict, Hint(value=Hint())),
        (NewType("Shown", Mapping[str, Any]), Hint(value=Hint())),
        (Any, Hint()),
        (None, Hint(optional=True)),
    ],
)
def test_hints(hint, expected):
    assert parse(hint) == expected


def test_hints_that_mean_nothing():
    with pytest.raises(TypeError, match="no message can be converted to"):
        parse(int | str)


def test_names_only_for_type_checkers_are_explained():
    def method(self, x: "Missing") -> None: ...  # noqa: F821

    with pytest.raises(TypeError, match="import it outside of TYPE_CHECKING"):
        signature_of(method)


def test_defaults_of_a_class():
    @dataclass
    class Made:
        format: int
        model: Any = None
        meshes_by_urdf_filepath: dict = field(default_factory=dict)

    reader = message_reader(PB.GetKinematicsResponse.DESCRIPTOR, Hint(Made))
    assert reader(PB.GetKinematicsResponse(format=2)) == Made(2, None, {})
    assert (
        message_reader(PB.GetKinematicsResponse.DESCRIPTOR, Hint(Kinematics))(PB.GetKinematicsResponse()).model is None
    )
