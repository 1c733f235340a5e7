"""Values survive the conversion to the wire and back."""

from datetime import UTC, datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from engine.components.motion.arm import MoveOptions
from rpc.api.convert import values
from rpc.api.convert.converters import (
    fill_duration,
    fill_resource_name,
    fill_timestamp,
    read_duration,
    read_resource_name,
    read_timestamp,
)
from rpc.api.convert.decode import message_reader
from rpc.api.convert.encode import message_fill
from rpc.api.convert.hints import Hint
from rpc.api.messages import common, load
from schema.names import API, ResourceName
from schema.space.geometry import (
    Capsule,
    Geometry,
    Pose,
    PoseInFrame,
    RectangularPrism,
    Sphere,
    Vector3,
)
from tests.unit.rpc.api.samples import wire

PB = common()
numbers = st.floats(allow_nan=False)
texts = st.text(st.characters(codec="utf-8"))
free = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(texts, free, max_size=5))
def test_struct_round_trip(value):
    struct = Struct()
    values.fill_struct(struct, value)
    assert values.read_struct(wire(struct)) == value


@given(
    st.datetimes(timezones=st.timezones() | st.just(UTC), min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1))
)
def test_timestamp_round_trip(value):
    message = Timestamp()
    fill_timestamp(message, value)
    assert 0 <= message.nanos < 10**9
    back = read_timestamp(wire(message))
    assert back == value.astimezone(UTC)  # a local time that a clock change skipped equals no other time
    assert back.tzinfo is UTC


@given(st.timedeltas(min_value=timedelta(days=-3_000_000), max_value=timedelta(days=3_000_000)))
def test_duration_round_trip(value):
    message = Duration()
    fill_duration(message, value)
    assert message.seconds * message.nanos >= 0
    assert read_duration(wire(message)) == value


poses = st.builds(Pose, *[numbers] * 7)
shapes = st.one_of(
    st.builds(lambda r: {"sphere": Sphere(r)}, numbers),
    st.builds(lambda x, y, z: {"box": RectangularPrism(Vector3(x, y, z))}, numbers, numbers, numbers),
    st.builds(lambda r, n: {"capsule": Capsule(r, n)}, numbers, numbers),
    st.just({}),
)
geometries = st.builds(lambda p, s, t: Geometry(center=p, label=t, **s), poses, shapes, texts)


@given(geometries)
def test_geometry_round_trip(value):
    message = PB.Geometry()
    message_fill(PB.Geometry.DESCRIPTOR)(message, value)
    assert message_reader(PB.Geometry.DESCRIPTOR, Hint(Geometry))(wire(message)) == value


@given(st.builds(PoseInFrame, texts, poses))
def test_pose_in_frame_round_trip(value):
    message = PB.PoseInFrame()
    message_fill(PB.PoseInFrame.DESCRIPTOR)(message, value)
    assert message_reader(PB.PoseInFrame.DESCRIPTOR, Hint(PoseInFrame))(wire(message)) == value


words = st.from_regex(r"[a-zA-Z0-9_-]{1,10}", fullmatch=True)
names = st.builds(ResourceName, st.builds(API, words, words, words), words, st.lists(words, max_size=2).map(tuple))


@given(names)
def test_resource_name_round_trip(value):
    for form in (value, str(value)):
        message = PB.ResourceName()
        fill_resource_name(message, form)
        assert read_resource_name(wire(message)) == value
    assert message.name == value.short


some = st.none() | numbers


move_options = st.builds(MoveOptions, some, some, st.lists(numbers), st.lists(numbers), some)


@given(move_options)
def test_optional_fields_round_trip(value):
    cls = load("component.arm.v1.arm_pb2").MoveOptions
    message = cls()
    message_fill(cls.DESCRIPTOR)(message, value)
    assert message_reader(cls.DESCRIPTOR, Hint(MoveOptions))(wire(message)) == value
