"""The trainer of classifiers, with a small backbone: the model that it writes works in the mlmodel service."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from engine.services.mlmodel import FlatTensors
from models.mlmodel.onnx.session import OnnxSession
from models.mlmodel.tensors import tensor, values
from tests.unit.training.trainers.small import SIZE, Dataset, backbone, picture
from training.jobs.events import Metric, Progress, of_line
from training.trainers import classification

THREE = ["red", "green", "blue"]


def single(folder: Path, count: int = 12) -> Dataset:
    dataset = Dataset(folder, THREE)
    for label in THREE:
        for _ in range(count):
            dataset.add([label, "other"], label)
    return dataset


def answer(model: Path, image: Image.Image) -> list[float]:
    """Return the probabilities for a picture, prepared as the vision service does it."""
    session = OnnxSession(str(model), label_path="", threads=1, providers=["CPUExecutionProvider"])
    pixels = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR).tobytes()
    image_tensor = tensor("float32", [1, SIZE, SIZE, 3], struct.pack(f"<{len(pixels)}f", *pixels))
    output = session.infer(FlatTensors({"image": image_tensor})).tensors["probability"]
    return list(struct.unpack(f"<{output.shape[1]}f", values(output, "probability")))


def test_a_single_label_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = single(tmp_path)
    assert classification.main(dataset.arguments()) == 0
    assert sorted(path.name for path in dataset.output.iterdir()) == ["labels.txt", "model.onnx", "report.json"]
    assert (dataset.output / "labels.txt").read_text() == "red\ngreen\nblue\n"
    for index, label in enumerate(THREE):
        row = answer(dataset.output / "model.onnx", picture(dataset.chance, label))
        assert sum(row) == pytest.approx(1, abs=1e-4)
        assert max(range(3), key=row.__getitem__) == index
    report = dataset.report
    assert report["test"]["accuracy"] == 1.0
    assert report["test"]["accuracy_of_the_most_frequent_answer"] == pytest.approx(1 / 3)
    assert report["test"]["confusion"] == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    assert report["test"]["labels"]["red"] == {"pictures": 2, "precision": 1.0, "recall": 1.0}
    assert len(report["pictures"]["training"]) == 30
    assert not set(report["pictures"]["training"]) & set(report["pictures"]["test"])
    events = [of_line(line) for line in capsys.readouterr().out.splitlines()]
    assert Metric("test_accuracy", 1.0) in events
    steps = [event for event in events if isinstance(event, Progress)]
    assert steps[0] == Progress(0, 72)
    assert Progress(36, 72) in steps  # the features
    assert steps == sorted(steps, key=lambda step: step.done)
    assert steps[-1] == Progress(72, 72)


def test_a_multi_label_model(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path, ["red", "green", "blue"])
    for top in THREE:
        for bottom in THREE:
            for _ in range(6):
                dataset.add(sorted({top, bottom}), top, bottom)
    assert classification.main(dataset.arguments("--model_type=multi_label_classification")) == 0
    row = answer(dataset.output / "model.onnx", picture(dataset.chance, "red", "blue"))
    assert [value > 0.5 for value in row] == [True, False, True]
    row = answer(dataset.output / "model.onnx", picture(dataset.chance, "green"))
    assert [value > 0.5 for value in row] == [False, True, False]
    assert dataset.report["test"]["accuracy"] > 0.9


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize("name", ["image", "pixels"])
def test_kinds_of_backbones(tmp_path: Path, planar: bool, maps: bool, name: str) -> None:
    dataset = Dataset(tmp_path, ["red", "green"])
    for label in ("red", "green"):
        for _ in range(8):
            dataset.add([label], label)
    (tmp_path / "backbone.onnx").write_bytes(backbone(planar=planar, maps=maps, input_name=name))
    assert classification.main(dataset.arguments()) == 0
    row = answer(dataset.output / "model.onnx", picture(dataset.chance, "green"))
    assert row[1] > row[0]


def test_the_same_data_and_seed_give_the_same_model(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        dataset = single(tmp_path / name)
        assert classification.main(dataset.arguments("--seed=5")) == 0
        contents.append(((dataset.output / "model.onnx").read_bytes(), dataset.report["pictures"]))
    assert contents[0] == contents[1]
    dataset = single(tmp_path / "c")
    assert classification.main(dataset.arguments("--seed=6")) == 0
    assert dataset.report["pictures"] != contents[0][1]


def test_labels_without_a_visible_difference_are_not_learned(tmp_path: Path) -> None:
    """The report is honest: labels drawn by lot are not learned."""
    dataset = Dataset(tmp_path, ["heads", "tails"])
    for number in range(80):
        dataset.add([["heads", "tails"][number % 2]], "red")
    assert classification.main(dataset.arguments()) == 0
    test = dataset.report["test"]
    assert 0.1 < test["accuracy"] < 0.9
    assert test["worst_mistakes"]
    assert test["worst_mistakes"][0]["id"] in dataset.report["pictures"]["test"]


def test_unreadable_and_repeated_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = single(tmp_path)
    dataset.add(["red"], "red", content=b"no picture")
    dataset.add(["red"], "red", content=(tmp_path / "0.png").read_bytes())
    bomb = tmp_path / "bomb.png"
    Image.new("1", (20_000, 20_000)).save(bomb)
    dataset.add(["red"], "red", content=bomb.read_bytes())
    dataset.add(["red"], "red")
    assert classification.main(dataset.arguments()) == 0
    assert dataset.report["pictures"]["unreadable"] == ["p36", "p38"]
    assert dataset.report["pictures"]["duplicates"] == ["p37"]
    output = capsys.readouterr().out
    assert "WARNING: the picture p36 cannot be read" in output
    assert Progress(40, 80) in map(of_line, output.splitlines())


def test_too_few_readable_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = single(tmp_path)
    for path in tmp_path.glob("[0-8].png"):
        path.write_bytes(b"damaged")
    assert classification.main(dataset.arguments()) == 1
    assert "ERROR: the label 'red' has only 3 different readable pictures" in capsys.readouterr().out
    assert not (dataset.output / "model.onnx").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an ONNX file"),
        (b"\xff" * 50, "not an ONNX file"),
        (backbone(metadata={}), "how pictures are prepared"),
        (backbone(metadata={"mean": "1,2", "std": "1"}), "three numbers"),
        (backbone(metadata={"mean": "1", "std": "0"}), "not positive"),
        (backbone(opset=9), "operator set is version 9"),
        (backbone(ir_version=3), "version 3"),
    ],
)
def test_backbones_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, reason: str
) -> None:
    dataset = single(tmp_path)
    (tmp_path / "backbone.onnx").write_bytes(content)
    assert classification.main(dataset.arguments()) == 1
    assert reason in capsys.readouterr().out


def test_another_start_continues_with_the_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = single(tmp_path)
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    monkeypatch.setenv("TRAINING_CHECKPOINTS", str(checkpoints))
    monkeypatch.setattr(classification, "SAVED", 10)
    assert classification.main(dataset.arguments()) == 0
    first = (dataset.output / "model.onnx").read_bytes()
    capsys.readouterr()
    assert classification.main(dataset.arguments()) == 0
    assert "continuing with the features of 36 pictures" in capsys.readouterr().out
    assert (dataset.output / "model.onnx").read_bytes() == first
    (tmp_path / "backbone.onnx").write_bytes(backbone(metadata={"mean": "100", "std": "50"}))
    assert classification.main(dataset.arguments()) == 0
    assert "continuing" not in capsys.readouterr().out  # the features of another backbone are of no use
    (checkpoints / "features.npz").write_bytes(b"damaged")
    assert classification.main(dataset.arguments()) == 0


def test_a_model_that_differs_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real: Any = classification.backbones.assembled

    def wrong(backbone: Any, head: Any, metadata: Any) -> bytes:
        count = len(head.biases) // 4
        moved = type(head)(
            head.weights,
            struct.pack(f"<{count}f", *(50 * index for index in range(count))),
            head.features,
            head.labels,
            True,
        )
        return bytes(real(backbone, moved, metadata))

    monkeypatch.setattr(classification.backbones, "assembled", wrong)
    assert classification.main(single(tmp_path).arguments()) == 1
    assert "differs from the trained one" in capsys.readouterr().out


def test_the_names_are_in_the_model(tmp_path: Path) -> None:
    dataset = single(tmp_path)
    classification.main(dataset.arguments())
    session = OnnxSession(
        str(dataset.output / "model.onnx"), label_path="", threads=1, providers=["CPUExecutionProvider"]
    )
    (output,) = session.metadata.output_info
    assert json.loads(json.dumps(output.extra)) == {"names": THREE}
