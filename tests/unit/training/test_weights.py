"""The weights that are part of the product: what they are, and that they can be used and passed on."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.unit.training.trainers.small import Dataset
from tools import backbone as tool
from training.trainers import backbone as backbones
from training.trainers import classification
from training.trainers.features import session_of
from training.weights import BACKBONE, add_notices


def test_the_file() -> None:
    content = BACKBONE.read_bytes()
    assert len(content) <= 4_500_000
    read = backbones.read(content)
    assert (read.planar, read.height, read.width) == (True, 224, 224)
    assert read.mean == read.deviation == (127.5, 127.5, 127.5)
    assert read.outputs == tuple((name, 4) for name in tool.OUTPUTS.values())


def test_features() -> None:
    arrays, runtime = importlib.import_module("numpy"), importlib.import_module("onnxruntime")
    session = session_of(runtime, BACKBONE.read_bytes())
    rows = arrays.linspace(-1, 1, 224, dtype="float32")
    picture = arrays.broadcast_to(rows[:, None], (1, 3, 224, 224))
    features, middle, fine = session.run(None, {"picture": picture})
    assert (features.shape, middle.shape, fine.shape) == ((1, 1280, 7, 7), (1, 96, 14, 14), (1, 32, 28, 28))
    assert 0 <= features.min() < features.max() <= 6
    assert abs(features[0, :, 0, 3] - features[0, :, 6, 3]).max() > 0.5  # the top is not the bottom


def test_training_without_an_option(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, ["red", "green"])
    for label in dataset.labels:
        for _ in range(8):
            dataset.add([label], label)
    arguments = [argument for argument in dataset.arguments() if not argument.startswith("--backbone")]
    assert classification.main(arguments) == 0
    assert dataset.report["backbone"]["file"] == BACKBONE.name
    assert dataset.report["test"]["accuracy"] == 1
    assert "@mediapipe/objectron" in (dataset.output / "NOTICE").read_text()
    assert "Apache License" in (dataset.output / "LICENSE").read_text()


def test_notices_of_other_weights(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "NOTICE").write_text("of others")
    add_notices(tmp_path / "other.onnx", tmp_path / "model")
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["NOTICE"]


def test_another_package_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "other.tgz"
    package.write_bytes(b"other")
    assert tool.main([str(package), f"--output={tmp_path / 'model.onnx'}"]) == 1
    assert "is expected" in capsys.readouterr().err
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("stride", [1, 2])
def test_padding_as_in_the_original(stride: int) -> None:
    """`SAME`: the length of a result is the length divided by the stride, rounded up, with more padding at the end."""
    arrays = importlib.import_module("numpy")
    weights = arrays.ones((1, 1, 3, 3), "float16")
    graph = tool.onnx.MESSAGES["Graph"]()
    pads = {}
    for length in (224, 75):
        layer = tool.Layer((0,), 1, 1, weights, arrays.zeros(1, "float16"), 1, stride)
        tool.append_convolution(graph, layer, "picture", "sum", length)
        pads[length] = list(next(entry for entry in graph.node[-1].attribute if entry.name == "pads").ints)
    assert pads == ({224: [1, 1, 1, 1], 75: [1, 1, 1, 1]} if stride == 1 else {224: [0, 0, 1, 1], 75: [1, 1, 1, 1]})
