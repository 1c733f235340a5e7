"""Every method that can be captured, on simulated resources, and the resulting content of the files."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path
from typing import Any

import pytest
import trio
from PIL import Image
from trio.testing import MockClock

from engine.components.media.camera import Annotations, BoundingBox, Images, PointCloud
from engine.components.media.camera import Image as CameraImage
from engine.components.media.camera import ImageClassification as Label
from engine.components.media.image_format import mime_type
from engine.components.motion.motor import Powered
from engine.components.sensing.encoder import EncoderPosition, PositionType
from engine.services.vision import CaptureAll, Classification, Detection
from rpc.api.convert import values
from runtime.parts.data.files.encode import CaptureRecord, Times, encoder, plain
from runtime.parts.data.files.frames import frames
from runtime.parts.data.methods import _METHODS, find, methods_of
from schema.errors import ConfigError, MachineError
from schema.names import API
from schema.space.geometry import GeoPoint, Orientation, Pose, Vector3
from tests.unit.runtime.parts.data.machines import capturing, contents, machine, status, structs

TIMES = Times(1_000, 2_000)


def sensor_data(record: CaptureRecord) -> Any:
    from rpc.api import messages

    ((_, message),) = frames(record.data)
    return messages.load("app.datasync.v1.data_sync_pb2").SensorData.FromString(message)


def captured(api: str, name: str, result: Any) -> Any:
    """Return the recorded form of one result of a tabular method."""
    the_api = API.parse(api)
    (record,) = encoder(the_api, find(the_api, name, ""))(result, TIMES)
    message = sensor_data(record)
    assert message.metadata.time_requested.ToNanoseconds() == 1_000
    assert message.metadata.time_received.ToNanoseconds() == 2_000
    return values.read_struct(message.struct)


COMPONENT = "rdk:component"


@pytest.mark.parametrize(
    ("api", "method", "result", "expected"),
    [
        ("sensor", "Readings", {"a": 1, "b": [True, None]}, {"readings": {"a": 1, "b": [True, None]}}),
        ("sensor", "Readings", {}, {"readings": {}}),
        (
            "movement_sensor",
            "Readings",
            {"p": GeoPoint(1, 2)},
            {"readings": {"p": {"lat": 1, "lng": 2, "_type": "geopoint"}}},
        ),
        ("generic", "DoCommand", {"done": True}, {"docommand_output": {"done": True}}),
        ("motor", "Position", 2.5, {"position": 2.5}),
        ("motor", "Position", 0.0, {"position": 0.0}),
        ("motor", "IsPowered", Powered(False, 0.0), {"is_on": False, "power_pct": 0.0}),
        ("servo", "Position", 90, {"position_deg": 90}),
        ("gantry", "Position", [1.0, 2.0], {"positions_mm": [1.0, 2.0]}),
        ("gantry", "Lengths", [], {"lengths_mm": []}),
        (
            "encoder",
            "TicksCount",
            EncoderPosition(4.0, PositionType.TICKS_COUNT),
            {"value": 4.0, "position_type": 1},
        ),
        ("arm", "JointPositions", [1.0, 0.0], {"positions": {"values": [1.0, 0.0]}}),
        (
            "arm",
            "EndPosition",
            Pose(x=1),
            {"pose": {"x": 1, "y": 0, "z": 0, "o_x": 0, "o_y": 0, "o_z": Pose().o_z, "theta": 0}},
        ),
        ("board", "Gpios", True, {"high": True}),
        ("movement_sensor", "LinearVelocity", Vector3(1, 2, 3), {"linear_velocity": {"x": 1, "y": 2, "z": 3}}),
        ("movement_sensor", "CompassHeading", 0.0, {"value": 0.0}),
        (
            "movement_sensor",
            "Orientation",
            Orientation(0, 0, 1, 90),
            {"orientation": {"o_x": 0, "o_y": 0, "o_z": 1, "theta": 90}},
        ),
        ("power_sensor", "Power", 12.5, {"watts": 12.5}),
    ],
)
def test_tabular_readings_have_the_published_names_and_their_zeros(
    api: str, method: str, result: Any, expected: Any
) -> None:
    content = captured(f"{COMPONENT}:{api}", method, result)
    if method == "EndPosition":
        content["pose"] = {key: value for key, value in content["pose"].items() if key in expected["pose"]}
    assert content == expected


def test_whole_numbers_stay_numbers() -> None:
    """Protobuf's own JSON would turn 64-bit numbers into text."""
    from rpc.api import messages

    vision = messages.load("service.vision.v1.vision_pb2")
    reply = vision.GetDetectionsResponse(detections=[vision.Detection(x_min=3, class_name="cup", confidence=0.5)])
    assert plain(reply) == {"detections": [{"x_min": 3, "class_name": "cup", "confidence": 0.5}]}


def test_every_image_is_a_reading_with_its_source_as_a_label() -> None:
    api = API.parse("rdk:component:camera")
    box = BoundingBox(label="cup", x_max_normalized=0.5, y_max_normalized=0.5, confidence=0.9)
    images = Images(
        [
            CameraImage(b"one", "image/jpeg", "color", Annotations([box], [Label(label="kitchen")])),
            CameraImage(b"two", "image/png", "depth"),
        ]
    )
    records = list(encoder(api, find(api, "GetImages", ""))(images, TIMES))
    assert [record.mime_type for record in records] == ["image/jpeg", "image/png"]
    first, second = map(sensor_data, records)
    assert (first.binary, second.binary) == (b"one", b"two")
    assert [classification.label for classification in first.metadata.annotations.classifications] == [
        "kitchen",
        "color",
    ]
    assert [item.label for item in first.metadata.annotations.bboxes] == ["cup"]
    assert [element.label for element in second.metadata.annotations.classifications] == ["depth"]


def test_read_image_adds_no_label_to_the_picture() -> None:
    """Otherwise a picture that is captured for training would count as labelled."""
    api = API.parse("rdk:component:camera")
    images = Images([CameraImage(b"one", "image/jpeg", "color", Annotations(classifications=[Label(label="kitchen")]))])
    (record,) = encoder(api, find(api, "ReadImage", ""))(images, TIMES)
    assert [element.label for element in sensor_data(record).metadata.annotations.classifications] == ["kitchen"]


@pytest.mark.parametrize(("expected", "taken"), [("image/png", b"two"), ("image/jpeg", b"one"), ("image/webp", b"one")])
def test_read_image_prefers_the_type_that_is_asked_for(expected: str, taken: bytes) -> None:
    api, parameters = API.parse("rdk:component:camera"), {"mime_type": expected}
    images = Images([CameraImage(b"one", "image/jpeg"), CameraImage(b"two", "image/png")])
    method = find(api, "ReadImage", "")
    assert method.arguments(parameters, "additional_params") == {}
    (record,) = encoder(api, method, parameters)(images, TIMES)
    assert (sensor_data(record).binary, record.mime_type == expected) == (taken, expected != "image/webp")


def test_a_point_cloud_is_a_reading() -> None:
    api = API.parse("rdk:component:camera")
    (record,) = encoder(api, find(api, "NextPointCloud", ""))(PointCloud(b"pcd"), TIMES)
    assert record.mime_type == "pointcloud/pcd"
    assert sensor_data(record).binary == b"pcd"


def test_results_of_a_vision_service_become_an_annotated_image() -> None:
    api = API.parse("rdk:service:vision")
    seen = CaptureAll(
        CameraImage(b"jpeg", "image/jpeg", "color"),
        detections=[
            Detection(0, 0, 5, 5, 0.75, "cup", 0.0, 0.0, 0.5, 0.5),
            Detection(0, 0, 5, 5, 0.75, "no box without fractions"),
        ],
        classifications=[Classification("kitchen", 0.5)],
    )
    (record,) = encoder(api, find(api, "CaptureAllFromCamera", ""))(seen, TIMES)
    annotations = sensor_data(record).metadata.annotations
    assert [(box.label, box.confidence, box.x_max_normalized) for box in annotations.bboxes] == [("cup", 0.75, 0.5)]
    assert [(classification.label, classification.confidence) for classification in annotations.classifications] == [
        ("kitchen", 0.5)
    ]
    with pytest.raises(MachineError, match="no image"):
        list(encoder(api, find(api, "CaptureAllFromCamera", ""))(CaptureAll(), TIMES))


@pytest.mark.parametrize(
    ("detections", "labels", "stored"),
    [
        ((0.3,), (), True),
        ((0.7,), (), True),
        ((0.29, 0.71), (), False),
        ((0.9, 0.5), (), True),
        ((), (0.9, 0.5), False),  # the most likely label is certain
        ((), (0.6, 0.4), True),
        ((), (), False),
    ],
)
def test_uncertain_results_can_be_selected(
    detections: tuple[float, ...], labels: tuple[float, ...], stored: bool
) -> None:
    api = API.parse("rdk:service:vision")
    encode = encoder(api, find(api, "CaptureAllFromCamera", ""), {"confidence_between": [0.3, 0.7]})
    seen = CaptureAll(
        CameraImage(b"jpeg", "image/jpeg", "color"),
        detections=[Detection(confidence=confidence) for confidence in detections],
        classifications=[Classification("a", confidence) for confidence in labels],
    )
    assert len(list(encode(seen, TIMES))) == stored


# ---- parameters


def test_parameters_become_arguments() -> None:
    board = API.parse("rdk:component:board")
    assert find(board, "Analogs", "").arguments({"reader_name": "a"}, "p") == {"analog_reader_name": "a"}
    assert find(board, "Gpios", "").arguments({"pin_name": "7"}, "p") == {"pin": "7"}
    seen = find(API.parse("rdk:service:vision"), "CaptureAllFromCamera", "").arguments({"camera_name": "c"}, "p")
    assert seen["camera_name"] == "c"
    assert seen["return_image"] is True


def test_selection_parameters_are_not_passed_to_the_resource() -> None:
    vision = find(API.parse("rdk:service:vision"), "CaptureAllFromCamera", "")
    assert vision.arguments({"confidence_between": [0, 1], "dataset_ids": ["d"]}, "p") == vision.fixed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("confidence_between", value) for value in (0.5, [], [0.5], [0.7, 0.3], [0, 1.1], ["0", "1"], [False, True])),
        ("confidence_between", [float("nan"), 1]),
        *(("dataset_ids", value) for value in ("d", [], [""], [1], ["d"] * 11)),
    ],
)
def test_wrong_selections_are_refused(name: str, value: Any) -> None:
    vision = find(API.parse("rdk:service:vision"), "CaptureAllFromCamera", "m")
    with pytest.raises(ConfigError, match=rf"p.{name}: .*write ") as caught:
        vision.arguments({name: value}, "p")
    assert caught.value.path == f"p.{name}"


@pytest.mark.parametrize(
    ("api", "method", "value", "message"),
    [
        ("board", "Analogs", {}, "p: 'reader_name' is missing"),
        ("board", "Analogs", {"reader_nam": "a"}, "p.reader_nam: .*did you mean 'reader_name'"),
        ("sensor", "Readings", {"x": 1}, "it has no parameters: remove it"),
        ("generic", "DoCommand", {}, "'docommand_input' is missing"),
    ],
)
def test_wrong_parameters_name_the_right_ones(api: str, method: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find(API.parse(f"rdk:component:{api}"), method, "m").arguments(value, "p")


@pytest.mark.parametrize(
    ("api", "name", "near"), [("sensor", "Reading", "Readings"), ("camera", "GetImage", "GetImages"), ("arm", "X", "")]
)
def test_an_unknown_method_names_near_ones(api: str, name: str, near: str) -> None:
    with pytest.raises(ConfigError, match=rf"has no capture method '{name}'.*{near}"):
        find(API.parse(f"rdk:component:{api}"), name, "m")


def test_every_method_of_the_table_exists() -> None:
    from engine.apis import base_of

    for text, methods in _METHODS.items():
        api = API.parse(text)
        base = base_of(api)
        for name, method in methods.items():
            assert hasattr(base, method.python), (text, name)
            assert encoder(api, method)
    assert "DoCommand" in methods_of(API.parse("acme:component:thing"))


# ---- on simulated resources

SIMULATED = [
    ("arm", "EndPosition", {}),
    ("arm", "JointPositions", {}),
    ("board", "Analogs", {"reader_name": "reader"}),
    ("board", "Gpios", {"pin_name": "15"}),
    ("encoder", "TicksCount", {}),
    ("gantry", "Position", {}),
    ("gantry", "Lengths", {}),
    ("generic", "DoCommand", {"docommand_input": {"ping": 1}}),
    ("motor", "Position", {}),
    ("motor", "IsPowered", {}),
    ("movement_sensor", "Position", {}),
    ("movement_sensor", "LinearVelocity", {}),
    ("movement_sensor", "AngularVelocity", {}),
    ("movement_sensor", "CompassHeading", {}),
    ("movement_sensor", "LinearAcceleration", {}),
    ("movement_sensor", "Orientation", {}),
    ("movement_sensor", "Readings", {}),
    ("power_sensor", "Voltage", {}),
    ("power_sensor", "Current", {}),
    ("power_sensor", "Power", {}),
    ("power_sensor", "Readings", {}),
    ("sensor", "Readings", {}),
    ("servo", "Position", {}),
    ("camera", "GetImages", {}),
    ("camera", "ReadImage", {}),
    ("camera", "NextPointCloud", {}),
    ("audio_in", "GetAudio", {"duration_seconds": 0.5}),
]


@pytest.mark.parametrize(("api", "method", "parameters"), SIMULATED)
async def test_a_simulated_resource_is_captured(
    autojump_clock: MockClock, tmp_path: Path, api: str, method: str, parameters: Any
) -> None:
    entry = {
        "name": "x",
        "api": f"rdk:component:{api}",
        "model": "fake",
        "attributes": {"analogs": [{"name": "reader", "pin": "1"}]} if api == "board" else {},
        "service_configs": capturing({"method": method, "capture_frequency_hz": 1, "additional_params": parameters}),
    }
    async with machine(tmp_path, entry) as memory:
        await trio.sleep(5)
        ((key, state),) = (await status(memory))["methods"].items()
        assert key.startswith(f"rdk:component:{api}/x {method}")
        assert state["failed"] == 0, state["last_error"]
        assert state["captured"] >= 3
    result = list(contents(tmp_path))
    assert result[0].header.method_name == method
    assert set(result[0].header.method_parameters) == set(parameters)
    if result[0].header.type == 2:
        assert len(result) == 1
        assert all(structs(tmp_path)), "no reading is empty"
        json.dumps(structs(tmp_path))
    else:
        assert all(len(content.readings) == 1 for content in result)
        assert all(content.readings[0].binary for content in result)


async def test_sound_is_a_wave_file(autojump_clock: MockClock, tmp_path: Path) -> None:
    entry = {
        "name": "mic",
        "api": "rdk:component:audio_in",
        "model": "fake",
        "service_configs": capturing({"method": "GetAudio", "capture_frequency_hz": 2}),
    }
    async with machine(tmp_path, entry):
        await trio.sleep(3)
    content = next(contents(tmp_path))
    assert (content.header.mime_type, content.header.file_extension) == ("audio/wav", ".wav")
    with wave.open(io.BytesIO(content.readings[0].binary)) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getsampwidth()) == (1, 16000, 2)
        assert sound.getnframes() == 8000, "as long as from one beat to the next"


async def test_pictures_can_be_opened(autojump_clock: MockClock, tmp_path: Path) -> None:
    entry = {
        "name": "eye",
        "api": "rdk:component:camera",
        "model": "fake",
        "service_configs": capturing({"method": "GetImages", "capture_frequency_hz": 2}),
    }
    async with machine(tmp_path, entry):
        await trio.sleep(2)
    for content in contents(tmp_path):
        data = content.readings[0].binary
        assert mime_type(data) == content.header.mime_type
        Image.open(io.BytesIO(data)).verify()


def test_odd_boxes_do_not_cost_the_image() -> None:
    api = API.parse("rdk:service:vision")
    result = CaptureAll(
        image=CameraImage(b"jpeg", "image/jpeg", "color"),
        detections=[
            Detection(0, 0, 5, 5, 1.02, "edge", -0.15, 0.0, 0.5, 1.2),
            Detection(0, 0, 0, 5, 0.75, "empty", 0.5, 0.0, 0.5, 0.5),
            Detection(0, 0, 5, 5, 0.75, "good", 0.0, 0.0, 0.5, 0.5),
        ],
        classifications=[Classification("x" * 3000, 0.5)],
    )
    (record,) = encoder(api, find(api, "CaptureAllFromCamera", ""))(result, TIMES)
    annotations = sensor_data(record).metadata.annotations
    assert [box.label for box in annotations.bboxes] == ["edge", "good"]
    edge = annotations.bboxes[0]
    assert (edge.x_min_normalized, edge.y_max_normalized, edge.confidence) == (0.0, 1.0, 1.0)
    assert [len(label.label) for label in annotations.classifications] == [1000]
    assert record.note == "2 brought into the picture or cut, 1 left out"


def test_a_reading_that_could_not_be_read_again_is_an_error_at_once() -> None:
    api = API.parse("rdk:component:sensor")
    encode = encoder(api, find(api, "Readings", ""))
    deep: dict[str, Any] = {}
    for _ in range(90):
        deep = {"a": deep}
    with pytest.raises(MachineError, match="nested too deeply to be stored: return at most 32 levels"):
        list(encode(deep, TIMES))
    shallow: dict[str, Any] = {}
    for _ in range(28):
        shallow = {"a": shallow}
    assert list(encode(shallow, TIMES))
