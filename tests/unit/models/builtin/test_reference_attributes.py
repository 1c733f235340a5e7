"""Attributes of the reference work, or are refused with the name of the missing feature."""

from __future__ import annotations

import json
from typing import Any

import pytest

from models.builtin import builtin_models, described
from models.check import check_document
from rpc.api.table import APIS
from schema.attributes import decode_attributes
from schema.document.machine import decode_document
from schema.errors import ConfigError, MachineError
from schema.missing_models import NOT_BUILT, unknown_model
from schema.names import API, Model
from tests.unit.models.builtin.support import Bench


def read(api: str, model: str, **attributes: Any) -> Any:
    return decode_attributes(
        builtin_models().config(API.parse(api), Model.parse(model)), attributes, path="attributes"
    )[0]


@pytest.mark.parametrize(
    ("api", "model", "attributes", "feature"),
    [
        ("rdk:component:gantry", "fake", {"model_path": "x.json"}, "attributes.model_path: not built: kinematics"),
        ("rdk:component:gripper", "fake", {"model-path": "x.json"}, "attributes.model-path: not built: kinematics"),
        (
            "rdk:component:input_controller",
            "gpio",
            {"board": "b", "axes": {"a": {"control": "AbsoluteX", "min": 0, "max": 1023}}},
            "attributes.axes: not built: axes on analog inputs",
        ),
        (
            "rdk:service:data_manager",
            "builtin",
            {"mongo_capture_config": {"uri": "mongodb://u:secret@h"}},
            "attributes.mongo_capture_config: not built: writing captured readings to MongoDB",
        ),
    ],
)
def test_attributes_that_are_not_implemented_are_refused_by_name(
    api: str, model: str, attributes: dict[str, Any], feature: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(api, model, **attributes)
    assert feature in str(caught.value)
    assert "secret" not in str(caught.value)


def test_other_names_of_keys() -> None:
    wheels = {"base": "b", "left_motors": ["l"], "right_motors": ["r"]}
    sensor = "rdk:component:movement_sensor"
    assert read(sensor, "wheeled-odometry", **wheels, time_interval_msecs=50).time_interval_msec == 50
    with pytest.raises(ConfigError, match="another name of 'time_interval_msec'"):
        read(sensor, "wheeled-odometry", **wheels, time_interval_msecs=50, time_interval_msec=60)
    with pytest.raises(ConfigError, match="time_interval_msec"):
        read(sensor, "wheeled-odometry", **wheels, time_interval_msecs="often")


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ({}, (1280, 720)),
        ({"width": 640, "height": 480}, (640, 480)),
        ({"width": 640}, (640, 360)),
        ({"height": 360}, (640, 360)),
        ({"width_px": 64, "height_px": 48}, (64, 48)),
        ({"width_px": 10, "height_px": 10}, (10, 10)),
        ({"height_px": 1}, (2, 1)),
        ({"width_px": 1}, (1, 1)),
        ({"width": 0, "height": 0}, (1280, 720)),
    ],
)
def test_the_size_of_a_simulated_camera(attributes: dict[str, Any], size: tuple[int, int]) -> None:
    assert read("rdk:component:camera", "fake", **attributes).size == size


@pytest.mark.parametrize("attributes", [{"width": -1}, {"width_px": 5000}, {"height": 4000}])
def test_a_size_that_a_simulated_camera_cannot_have(attributes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        read("rdk:component:camera", "fake", **attributes)


@pytest.mark.parametrize(
    ("attributes", "lengths"),
    [
        ({}, [1000, 1000, 1000]),
        ({"length_mm": 300}, [300]),
        ({"lengths_mm": [1, 2]}, [1, 2]),
        ({"axes": 2}, [1000, 1000]),
    ],
)
def test_lengths_of_a_simulated_gantry(attributes: dict[str, Any], lengths: list[float]) -> None:
    assert read("rdk:component:gantry", "fake", **attributes).lengths == lengths
    for wrong in ({"length_mm": 1, "lengths_mm": [1]}, {"length_mm": 1, "axes": 2}, {"lengths_mm": [1] * 4}):
        with pytest.raises(ConfigError):
            read("rdk:component:gantry", "fake", **wrong)


# The structure follows the reference's published examples; the documents are written for this test.
ACCEPTED: list[dict[str, Any]] = [
    {"components": [{"name": "m", "type": "motor", "model": "fake",
      "attributes": {"pins": {"a": "1", "b": "2", "pwm": "3"}, "pwm_freq": 1000}}]},
    {"components": [{"name": "e", "type": "encoder", "model": "fake", "attributes": {"pins": {"a": "1", "b": "2"}}}]},
    {"components": [
        {"name": "b", "type": "board", "model": "fake"},
        {"name": "i", "type": "input_controller", "model": "gpio",
         "attributes": {"board": "b", "buttons": {"x": {"control": "ButtonStart", "debounce_msec": -1}}}},
    ]},
    {"components": [{"name": "c", "type": "camera", "model": "image_file", "attributes": {}}]},
    {"components": [{"name": "c", "type": "camera", "model": "image_file", "attributes": {"preloaded_image": "dog"}}]},
    {"components": [{"name": "c", "type": "camera", "model": "fake", "attributes": {"width": 640, "height": 480}}]},
]  # fmt: skip


@pytest.mark.parametrize("document", ACCEPTED)
def test_documents_of_the_reference_are_accepted(document: dict[str, Any]) -> None:
    checked = check_document(decode_document(json.dumps(document).encode()), builtin_models())
    assert (checked.problems, checked.warnings) == ((), ())


WITHOUT_MODELS = sorted(
    {str(api) for api in APIS if api.namespace == "rdk"} - {entry["api"] for entry in described()["models"]}
)


@pytest.mark.parametrize(
    ("api", "model"), [*NOT_BUILT, *((api, model) for api in WITHOUT_MODELS for model in ("builtin", "fake"))]
)
def test_models_that_are_not_built_are_called_so(api: str, model: str) -> None:
    section = "services" if ":service:" in api else "components"
    document = {section: [{"name": "x", "api": api, "model": model}]}
    (problem,) = check_document(decode_document(json.dumps(document).encode()), builtin_models()).problems
    assert problem.reason.startswith("not built: ")
    assert problem.path == f"{section}.0.model"
    assert "did you mean" not in problem.remedy
    assert "add a module that offers it" in problem.remedy


def test_an_api_without_models_is_not_built_until_it_has_a_model() -> None:
    api, model = API.parse("rdk:service:slam"), Model.parse("rdk:builtin:cartographer")
    assert unknown_model(api, model, [], APIS).message == "not built: models of rdk:service:slam"
    assert "did you mean" in unknown_model(api, model, [(str(api), "rdk:builtin:cartographer2")], APIS).remedy
    assert "nothing provides that API" in unknown_model(api, Model.parse("acme:x:y"), [], APIS).remedy


async def test_an_image_file_without_a_file_says_what_is_missing(bench: Bench) -> None:
    camera = await bench.add("camera", "it", {}, model="image_file")
    with pytest.raises(MachineError, match="color_image_file_path"):
        await camera.get_images()


@pytest.mark.parametrize("name", ["pizza", "dog", "crowd"])
async def test_a_preloaded_image_is_a_drawing(bench: Bench, name: str) -> None:
    camera = await bench.add("camera", "it", {"preloaded_image": name}, model="image_file")
    (image,) = (await camera.get_images()).images
    assert (image.mime_type, image.source_name) == ("image/png", "preloaded")
    assert image.image.startswith(b"\x89PNG")
