"""The vision service `mlmodel` with models whose answers the test sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.resource import Unsupported
from engine.services.mlmodel import FlatTensor, Metadata, TensorInfo
from engine.services.vision import Classification
from models.mlmodel.tensors import values
from models.vision.mlmodel.attributes import ModelVisionConfig
from schema.attributes import decode_attributes
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.vision.drawn import DrawnCamera, encoded, floats, model, picture

NAMES = {"names": ["cat", "dog", "bird"]}


def metadata_of(outputs: list[TensorInfo], *, shape: tuple[int, ...] = (1, 10, 20, 3), **facts: Any) -> Metadata:
    return Metadata("test", "onnx", "", [TensorInfo("image", "", "uint8", shape, (), facts)], outputs)


def classes(*shares: float, **facts: Any) -> tuple[Metadata, dict[str, FlatTensor]]:
    info = TensorInfo("probability", "", "float32", [1, len(shares)], (), NAMES)
    return metadata_of([info], **facts), {"probability": floats([1, len(shares)], *shares)}


def places() -> tuple[Metadata, dict[str, FlatTensor]]:
    names = {"boxes": [1, 2, 4], "classes": [1, 2], "confidences": [1, 2]}
    infos = [TensorInfo(name, "", "float32", shape, (), NAMES) for name, shape in names.items()]
    return metadata_of(infos), {
        "boxes": floats([1, 2, 4], 0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 1.5, 1.0),
        "classes": floats([1, 2], 1, 5),
        "confidences": floats([1, 2], 0.5, 0.75),
    }


async def seeing(bench: Bench, created: tuple[Metadata, dict[str, FlatTensor]], **attributes: Any) -> Any:
    await bench.add("camera", "cam", cls=DrawnCamera)
    await bench.add("rdk:service:mlmodel", "m", cls=model(*created))
    return await bench.add(
        "rdk:service:vision", "eye", {"mlmodel_name": "m", **attributes}, model="mlmodel", depends_on=("cam",)
    )


def shown(bench: Bench) -> FlatTensor:
    (item,) = [first for name, first in bench.resources.items() if name.short == "m"]
    return item.shown[-1].tensors["image"]  # type: ignore[attr-defined, no-any-return]


async def test_a_classifier(bench: Bench) -> None:
    eye = await seeing(bench, classes(0.25, 0.5, 0.125), camera_name="cam")
    expected = [Classification("dog", 0.5), Classification("cat", 0.25), Classification("bird", 0.125)]
    assert await eye.get_classifications_from_camera() == expected
    assert await eye.get_classifications_from_camera("cam", 2) == expected[:2]
    assert await eye.get_classifications(encoded(picture()), 0, 0, "image/png", 1) == expected[:1]
    properties = await eye.get_properties()
    assert (properties.classifications_supported, properties.detections_supported) == (True, False)
    with pytest.raises(Unsupported, match="request classifications"):
        await eye.get_detections_from_camera("cam")
    everything = await eye.capture_all_from_camera("cam", False, True, True)
    assert (everything.classifications, everything.detections) == (expected, ())
    assert list(shown(bench).shape) == [1, 10, 20, 3]
    assert shown(bench).uint8_tensor is not None
    assert (await eye.get_status())["layout"] == "classes"


@pytest.mark.parametrize(
    ("shape", "kind", "advised"),
    [
        ((1, -1, -1, 3), ErrorKind.INTERNAL, True),
        ((1, 10, 20, 3), ErrorKind.INTERNAL, False),
        ((1, -1, -1, 3), ErrorKind.UNAVAILABLE, False),
    ],
)
async def test_a_model_that_fails_with_the_size_of_the_picture(
    bench: Bench, shape: tuple[int, ...], kind: ErrorKind, advised: bool
) -> None:
    eye = await seeing(bench, classes(1.0, shape=shape), camera_name="cam")
    (failing,) = [each for name, each in bench.resources.items() if name.short == "m"]

    async def infer(*_: Any, **__: Any) -> Any:
        raise MachineError("Concat: dimensions do not match", kind=kind)

    failing.infer = infer  # type: ignore[attr-defined]
    with pytest.raises(MachineError, match="Concat: dimensions do not match") as raised:
        await eye.get_classifications_from_camera()
    assert raised.value.kind is kind
    assert ("set input_size_px of eye" in raised.value.remedy) is advised


async def test_a_detector_with_names_of_its_own(bench: Bench) -> None:
    eye = await seeing(bench, places(), remap_output_names={"confidences": "score"})
    first, second = await eye.get_detections_from_camera("cam")
    assert (first.class_name, first.confidence) == ("5", 0.75)
    assert (first.x_min, first.y_min, first.x_max, first.y_max) == (100, 50, 200, 100)
    assert (second.class_name, second.x_min, second.y_max) == ("dog", 20, 40)
    with pytest.raises(Unsupported, match="request detections"):
        await eye.get_classifications_from_camera("cam")
    status = await eye.get_status()
    assert status["outputs"] == {"location": "boxes", "category": "classes", "score": "confidences"}
    assert status["labels"] == 3


@pytest.mark.parametrize(
    ("attributes", "labels"),
    [
        ({"default_minimum_confidence": 0.6}, ["5"]),
        ({"label_confidences": {"DOG": 0.5}}, ["dog"]),
        ({"label_confidences": {"dog": 0.51, "5": 0.1}}, ["5"]),
        ({"label_confidences": {"cat": 0.0}}, []),
        ({"default_minimum_confidence": 0.99, "label_confidences": {"dog": 0.1}}, ["dog"]),
    ],
)
async def test_only_confident_results_count(bench: Bench, attributes: dict[str, Any], labels: list[str]) -> None:
    eye = await seeing(bench, places(), remap_output_names={"confidences": "score"}, **attributes)
    assert [item.class_name for item in await eye.get_detections_from_camera("cam")] == labels


async def test_classes_that_are_not_likely_enough_are_left_out(bench: Bench) -> None:
    eye = await seeing(bench, classes(0.25, 0.5, 0.125), default_minimum_confidence=0.25)
    assert [item.class_name for item in await eye.get_classifications_from_camera("cam")] == ["dog", "cat"]


async def test_a_letterboxed_picture_has_its_boxes_at_the_right_place(bench: Bench) -> None:
    """An image of 200 x 100 pixels in a square input leaves bars in the upper and lower quarters."""
    info = TensorInfo("output0", "", "float32", [1, 6, 3], (), {"names": ["a", "b"]})
    rows = [[40, 41, 20], [40, 40, 70], [20, 20, 20], [20, 20, 20], [0.9, 0.8, 0.1], [0.1, 0.1, 0.2]]
    created = (
        metadata_of([info], shape=(1, 3, 80, 80)),
        {"output0": floats([1, 6, 3], *[value for row in rows for value in row])},
    )
    eye = await seeing(bench, created, letterbox=True)
    (item,) = await eye.get_detections_from_camera("cam")  # without a duplicate and an unlikely box
    assert (item.x_min, item.y_min, item.x_max, item.y_max) == (75, 25, 125, 75)
    assert item.confidence == pytest.approx(0.9)
    assert list(shown(bench).shape) == [1, 3, 80, 80]
    both = await seeing_again(bench, letterbox=True, overlap_threshold=1.0, default_minimum_confidence=0.0)
    assert len(await both.get_detections_from_camera("cam")) == 2  # with the duplicate; the third lies in a bar


async def seeing_again(bench: Bench, **attributes: Any) -> Any:
    return await bench.add(
        "rdk:service:vision", "other", {"mlmodel_name": "m", **attributes}, model="mlmodel", depends_on=("cam",)
    )


async def test_normalisation_follows_the_configuration_then_the_model_then_the_type(bench: Bench) -> None:
    info = TensorInfo("probability", "", "float32", [1, 1])
    image = TensorInfo(
        "image", "", "float32", [1, 2, 2, 3], (), {"mean": [10, 10, 10], "std_dev": [5, 5, 5], "bgr": True}
    )
    created = (Metadata("m", "", "", [image], [info]), {"probability": floats([1, 1], 1)})
    eye = await seeing(bench, created)
    grey = encoded(picture((4, 4), {(0, 0, 4, 4): (10, 20, 30)}))
    await eye.get_classifications(grey)
    assert list(values(shown(bench), "image"))[:3] == pytest.approx([4, 2, 0])
    own = await seeing_again(
        bench, input_image_mean_value=[0, 0, 10], input_image_std_dev=[1, 2, 1], input_image_bgr=False
    )
    await own.get_classifications(grey)
    assert list(values(shown(bench), "image"))[:3] == pytest.approx([10, 10, 20])
    assert (await own.get_classifications(grey)) == [Classification("0", 1.0)]


async def test_yolo_models_are_shown_0_to_1(bench: Bench) -> None:
    image = TensorInfo("images", "", "float32", [1, 3, 2, 2])
    output = TensorInfo("output0", "", "float32", [1, 6, 20])
    created = (Metadata("m", "", "", [image], [output]), {"output0": floats([1, 6, 1], 1, 1, 1, 1, 0.5, 0)})
    eye = await seeing(bench, created)
    assert len(await eye.get_detections(encoded(picture((4, 4), {(0, 0, 4, 4): (51, 102, 255)})))) == 1
    (item,) = [first for name, first in bench.resources.items() if name.short == "m"]
    passed = values(item.shown[-1].tensors["images"], "images")  # type: ignore[attr-defined]
    assert list(passed)[::4] == pytest.approx([0.2, 0.4, 1.0])


async def test_labels_of_files(bench: Bench, tmp_path: Path) -> None:
    model_labels, own_labels = tmp_path / "model.txt", tmp_path / "own.txt"
    model_labels.write_text("one\ntwo\n")
    own_labels.write_text("eins\nzwei\n")
    info = TensorInfo("probability", "", "float32", [1, 2], (), {"labels": str(model_labels)})
    created = (metadata_of([info]), {"probability": floats([1, 2], 0.25, 0.75)})
    eye = await seeing(bench, created)
    assert [item.class_name for item in await eye.get_classifications_from_camera("cam")] == ["two", "one"]
    own = await seeing_again(bench, label_path=str(own_labels))
    assert [element.class_name for element in await own.get_classifications_from_camera("cam")] == ["zwei", "eins"]


async def test_a_free_input_takes_the_picture_as_it_is_or_as_configured(bench: Bench) -> None:
    created = classes(1.0, shape=(1, -1, -1, 3))
    eye = await seeing(bench, created)
    await eye.get_classifications_from_camera("cam")
    assert list(shown(bench).shape) == [1, 100, 200, 3]
    sized = await seeing_again(bench, input_size_px=[64, 32])
    await sized.get_classifications_from_camera("cam")
    assert list(shown(bench).shape) == [1, 32, 64, 3]


async def test_a_model_that_tells_nothing_is_taken_at_the_configurations_word(bench: Bench) -> None:
    names = {"a": "location", "b": "category", "c": "score"}
    answers = {"a": floats([1, 1, 4], 0.25, 0.5, 0.5, 1.0), "b": floats([1, 1], 3), "c": floats([1, 1], 0.5)}
    eye = await seeing(bench, (Metadata(), answers), remap_output_names=names)
    (item,) = await eye.get_detections_from_camera("cam")
    assert (item.x_min, item.y_min, item.class_name) == (50, 50, "3")
    assert (list(shown(bench).shape), shown(bench).uint8_tensor is not None) == ([1, 100, 200, 3], True)


async def failure(created: tuple[Metadata, dict[str, FlatTensor]], **attributes: Any) -> MachineError:
    """Return the error of a vision service that cannot start with this model."""
    import trio

    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await seeing(Bench(nursery), created, **attributes)
    (error,) = caught.value.exceptions
    assert isinstance(error, MachineError)
    return error


async def test_a_model_that_is_not_understood_says_why() -> None:
    error = await failure((metadata_of([TensorInfo("a"), TensorInfo("b")]), {}))
    assert (error.kind, "remap_output_names" in error.remedy) == (ErrorKind.PRECONDITION, True)
    two_inputs = Metadata("m", "", "", [TensorInfo("a"), TensorInfo("b")], [TensorInfo("probability")])
    error = await failure((two_inputs, {}))
    assert "inputs a, b" in error.message
    assert "remap_input_names" in error.remedy
    error = await failure(classes(1.0), label_path="/nowhere/labels.txt")
    assert "/nowhere/labels.txt" in error.message


async def test_a_model_that_breaks_its_word(bench: Bench) -> None:
    eye = await seeing(bench, (classes(1.0)[0], {}))
    with pytest.raises(MachineError, match="returned no tensor 'probability'"):
        await eye.get_classifications_from_camera("cam")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output_layout": "yolov3"}, "not one of boxes, yolov5"),
        ({"xmin_ymin_xmax_ymax_order": [0, 1, 2]}, "0, 1, 2 and 3 in some order"),
        ({"xmin_ymin_xmax_ymax_order": [0, 1, 2, 2]}, "in some order"),
        ({"input_image_mean_value": [1]}, "give 3"),
        ({"input_image_std_dev": [1, 0, 1]}, "contains 0"),
        ({"input_size_px": [0, 1]}, "width and a height"),
        ({"input_size_px": [10]}, "width and a height"),
        ({"default_minimum_confidence": 1.5}, "default_minimum_confidence"),
        ({"label_confidences": {"a": -1}}, "label_confidences"),
    ],
)
def test_attributes_that_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        decode_attributes(ModelVisionConfig, {"mlmodel_name": "m", **change}, path="attributes")
