"""ONNX models in ONNX Runtime; skipped where the extra `ml` is not installed."""

from __future__ import annotations

import os
import re
import resource
import struct
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
import trio

from engine.services.mlmodel import FlatTensor, FlatTensors, LabelType
from models.mlmodel.tensors import TYPES, tensor, values
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench
from tests.unit.models.vision import onnx_file
from tests.unit.models.vision.drawn import BLUE, GREEN, DrawnCamera, encoded, floats, picture

pytest.importorskip("onnxruntime", reason="the extra ml (onnxruntime) is not installed")


def write(folder: Path, data: bytes) -> str:
    path = folder / "model.onnx"
    path.write_bytes(data)
    return str(path)


async def onnx(bench: Bench, folder: Path, data: bytes, **attributes: Any) -> Any:
    attributes = {"model_path": write(folder, data), "num_threads": 1, **attributes}
    return await bench.add("rdk:service:mlmodel", "m", attributes, model="onnx")


async def failure(folder: Path, data: bytes | None = None, **attributes: Any) -> MachineError:
    """Return the error of a model that cannot be loaded."""
    if data is not None:
        attributes["model_path"] = write(folder, data)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await Bench(nursery).add("rdk:service:mlmodel", "m", attributes, model="onnx")
    (error,) = caught.value.exceptions
    assert isinstance(error, MachineError)
    return error


async def test_a_model_tells_what_it_takes_and_gives(bench: Bench, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("red\ngreen\nblue\n")
    content = await onnx(bench, tmp_path, onnx_file.classifier(), label_path=str(labels))
    reported = await content.metadata()
    assert (reported.name, reported.type, reported.description) == ("drawn", "onnx", "of a test")
    (item,), (result,) = reported.input_info, reported.output_info
    assert (item.name, item.data_type, list(item.shape)) == ("image", "float32", [1, 3, 8, 8])
    assert (result.name, result.data_type, list(result.shape)) == ("logits", "float32", [1, 3])
    assert result.extra == {"labels": str(labels)}
    assert [(file.name, file.label_type) for file in result.associated_files] == [(str(labels), LabelType.TENSOR_VALUE)]
    answer = await content.infer(FlatTensors({"image": floats([1, 3, 8, 8], *[1.0] * 64, *[2.0] * 64, *[3.0] * 64)}))
    assert list(values(answer.tensors["logits"], "logits")) == pytest.approx([1, 2, 3])
    assert await content.get_status() == {"providers": ["CPUExecutionProvider"], "inferences": 1}


async def test_metadata_in_the_model_file_is_reported(bench: Bench, tmp_path: Path) -> None:
    facts = {
        "names": "{0: 'red', 1: 'green', 2: 'blue'}",
        "Image.NominalPixelRange": "Normalized_1_1",
        "Image.BitmapPixelFormat": "Bgr8",
    }
    result = await (await onnx(bench, tmp_path, onnx_file.classifier(facts))).metadata()
    assert result.input_info[0].extra == {"mean": [127.5] * 3, "std_dev": [127.5] * 3, "bgr": True}
    assert result.output_info[0].extra == {"names": ["red", "green", "blue"]}


@pytest.mark.parametrize("element", [*TYPES, "float16", "bool"])
async def test_every_type_both_ways(bench: Bench, tmp_path: Path, element: str) -> None:
    result = await onnx(bench, tmp_path, onnx_file.identity(element))
    carried = {"float16": "float32", "bool": "uint8"}.get(element, element)
    reported = await result.metadata()
    assert [(item.data_type, list(item.shape)) for item in (*reported.input_info, *reported.output_info)] == [
        (element, [-1, 2])
    ] * 2
    low = 0 if element == "bool" or element.startswith("u") else -1
    code = TYPES[carried][1]
    expected = array(code, [low, 1, 0, 1])
    answer = await result.infer(FlatTensors({"given": tensor(carried, [2, 2], expected.tobytes())}))
    assert list(answer.tensors["found"].shape) == [2, 2]
    assert values(answer.tensors["found"], "found") == expected


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({}, "needs the input image"),
        ({"other": floats([1], 1)}, "no input 'other'"),
        ({"image": FlatTensor([1, 3, 8, 8], uint8_tensor=bytes(192))}, "'image' is uint8.*use float32"),
        ({"image": floats([1, 3, 8, 7], *[0.0] * 168)}, r"shape \[1, 3, 8, 7\].*\[1, 3, 8, 8\]"),
        ({"image": floats([192], *[0.0] * 192)}, r"shape \[192\]"),
        ({"image": floats([1, 3, 8, 8], 1.0)}, "1 values, which does not match its shape"),
    ],
)
async def test_tensors_that_do_not_fit_are_refused_by_name(
    bench: Bench, tmp_path: Path, tensors: dict[str, FlatTensor], words: str
) -> None:
    result = await onnx(bench, tmp_path, onnx_file.classifier())
    with pytest.raises(MachineError) as caught:
        await result.infer(FlatTensors(tensors))
    assert caught.value.kind is ErrorKind.INVALID
    assert re.search(words, f"{caught.value.message}: {caught.value.remedy}")


async def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    error = await failure(tmp_path, model_path=str(tmp_path / "none.onnx"))
    assert (error.kind, str(tmp_path / "none.onnx") in error.message) == (ErrorKind.PRECONDITION, True)
    error = await failure(tmp_path, b"nonsense")
    assert (error.kind, "model.onnx cannot be loaded" in error.message) == (ErrorKind.PRECONDITION, True)
    error = await failure(tmp_path, onnx_file.identity("string"))
    assert "tensor(string), which the API does not support" in error.message
    error = await failure(tmp_path, onnx_file.classifier(), label_path=str(tmp_path / "labels.txt"))
    assert "labels.txt" in error.message
    error = await failure(tmp_path, onnx_file.classifier(), providers=["MoonExecutionProvider"])
    assert "does not support MoonExecutionProvider" in error.message
    assert "CPUExecutionProvider" in error.remedy


async def test_without_onnx_runtime_the_remedy_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    error = await failure(tmp_path, onnx_file.classifier())
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "machine-runtime[ml]" in error.remedy


async def test_a_picture_through_a_real_model(bench: Bench, tmp_path: Path) -> None:
    await bench.add("camera", "cam", cls=DrawnCamera)
    facts = {"names": "{0: 'red', 1: 'green', 2: 'blue'}", "Image.NominalPixelRange": "Normalized_0_1"}
    await onnx(bench, tmp_path, onnx_file.classifier(facts))
    eye = await bench.add("rdk:service:vision", "eye", {"mlmodel_name": "m"}, model="mlmodel", depends_on=("cam",))
    for color, label in ((BLUE, "blue"), (GREEN, "green")):
        classifications = await eye.get_classifications(encoded(picture((60, 40), {(10, 10, 50, 30): color})), n=1)
        assert [item.class_name for item in classifications] == [label]


async def test_boxes_through_a_real_model(bench: Bench, tmp_path: Path) -> None:
    await bench.add("camera", "cam", cls=DrawnCamera)
    await onnx(bench, tmp_path, onnx_file.detector({"names": "{0: 'cat', 1: 'dog'}"}))
    eye = await bench.add("rdk:service:vision", "eye", {"mlmodel_name": "m"}, model="mlmodel", depends_on=("cam",))
    detections = await eye.get_detections_from_camera("cam")
    assert [(item.class_name, item.x_min, item.y_min, item.x_max, item.y_max) for item in detections] == [
        ("cat", 100, 50, 200, 100),
        ("dog", 20, 20, 60, 40),
    ]


async def test_many_at_once_are_all_answered_and_a_cancelled_one_is_not_waited_for(
    bench: Bench, tmp_path: Path
) -> None:
    result = await onnx(bench, tmp_path, onnx_file.identity("float32"))
    answers: dict[int, float] = {}

    async def ask(index: int) -> None:
        answer = await result.infer(FlatTensors({"given": floats([1, 2], index, 0)}))
        answers[index] = values(answer.tensors["found"], "found")[0]

    async with trio.open_nursery() as nursery:
        for index in range(20):
            nursery.start_soon(ask, index)
        with trio.CancelScope() as scope:
            scope.cancel()
            await ask(99)
    assert answers == {index: float(index) for index in range(20)}


async def test_a_model_cannot_take_all_memory(bench: Bench, tmp_path: Path) -> None:
    model = await onnx(bench, tmp_path, onnx_file.as_large_as_asked())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    beyond = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 // 4 + 1000  # zeros of four bytes
    with pytest.raises(MachineError, match="needs more memory than all models may use") as caught:
        await model.infer(FlatTensors({"size": tensor("float32", [1], struct.pack("<f", beyond * 1.01))}))
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB
    small = await model.infer(FlatTensors({"size": tensor("float32", [1], struct.pack("<f", 10.0))}))
    assert list(values(small.tensors["sum"], "sum")) == [0.0]
