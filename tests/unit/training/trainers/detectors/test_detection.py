"""The trainer of detectors: what it writes works in the mlmodel service and in the vision service."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest
from PIL import Image, ImageDraw

from engine.services.mlmodel import FlatTensors
from models.mlmodel.onnx.session import OnnxSession
from models.mlmodel.tensors import tensor
from models.vision.mlmodel.model_output import TensorReading, boxes, roles_of
from tests.unit.training.trainers.small import backbone as small_backbone
from training.jobs.events import Metric, Progress, of_line
from training.trainers import backbone as backbones
from training.trainers import detection
from training.trainers.detectors import fitting, graph, network
from training.trainers.detectors.boxes import Box, overlap
from training.trainers.features import session_of
from training.weights import BACKBONE

LABELS = ["disc", "bar"]
ROOT = Path(__file__).parents[5]
SHORT = """
import sys
from training.trainers import detection
from training.trainers.detectors import fitting
detection.COPIES, detection.ENOUGH_COPIES, fitting.STEPS = 2, 0, 200
sys.exit(detection.main(sys.argv[1:]))
"""
COLORS = {"disc": (220, 40, 40), "bar": (40, 60, 220)}


def scene(chance: random.Random) -> tuple[Image.Image, list[Box]]:
    """Return a picture of one of each, which do not overlap."""
    image = Image.new("RGB", (112, 112), (chance.randint(90, 160),) * 3)
    draw, places = ImageDraw.Draw(image), []
    for label, offset in zip(chance.sample(LABELS, 2), (0, 56), strict=True):
        width, height = (36, 36) if label == "disc" else (44, 20)
        x, y = offset + chance.randint(0, 55 - width), chance.randint(0, 110 - height)
        edges = (x, y, x + width, y + height)
        (draw.ellipse if label == "disc" else draw.rectangle)(edges, fill=COLORS[label])
        places.append(Box(label, *(edge / 112 for edge in edges)))
    return image, places


def dataset(folder: Path, count: int) -> list[str]:
    chance, lines = random.Random(5), []
    for number in range(count):
        image, truth = scene(chance)
        image.save(folder / f"{number}.png")
        edges = ("x_min", "y_min", "x_max", "y_max")
        annotations = [
            {"annotation_label": box.label, **{f"{edge}_normalized": getattr(box, edge) for edge in edges}}
            for box in truth
        ]
        entry = {"image_path": str(folder / f"{number}.png"), "binary_data_id": f"p{number}"}
        lines.append(json.dumps({**entry, "bounding_box_annotations": annotations}))
    (folder / "dataset.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "labels.json").write_text(json.dumps(LABELS))
    names = {"dataset_file": "dataset.jsonl", "labels_file": "labels.json", "model_output_directory": "output"}
    return [f"--{name}={folder / file}" for name, file in names.items()]


def detected(model: Path, image: Image.Image) -> list[Any]:
    """Return boxes as the vision service reads them from the mlmodel service."""
    session = OnnxSession(str(model), label_path="", threads=1, providers=["CPUExecutionProvider"])
    pixels = image.resize((224, 224), Image.Resampling.BILINEAR).tobytes()
    floats = tensor("float32", [1, 224, 224, 3], struct.pack(f"<{len(pixels)}f", *pixels))
    output = session.infer(FlatTensors({"image": floats})).tensors
    roles = roles_of(session.metadata.output_info, {}, len(LABELS))
    assert roles.detects
    return boxes(output, roles, TensorReading(0.4))


@pytest.mark.slow
@pytest.mark.limit(120)
def test_a_detector(tmp_path: Path) -> None:
    """The trainer runs in a separate process, as in a job, with fewer steps."""
    command = [sys.executable, "-c", SHORT, *dataset(tmp_path, 40)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
    output = tmp_path / "output"
    names = ["LICENSE", "NOTICE", "labels.txt", "model.onnx", "report.json"]
    assert sorted(path.name for path in output.iterdir()) == names
    report = json.loads((output / "report.json").read_text())
    assert report["test"]["mAP50"] > 0.8, report["test"]
    assert set(report["test"]["labels"]) == set(LABELS)
    divided = [set(report["pictures"][name]) for name in ("training", "validation", "test")]
    assert [len(ids) for ids in divided] == [25, 7, 8]
    assert len(set.union(*divided)) == 40
    events = [of_line(line) for line in done.stdout.splitlines()]
    assert any(isinstance(event, Progress) for event in events)
    assert {event.name for event in events if isinstance(event, Metric)} >= {"loss", "validation_mAP", "test_mAP50"}
    image, truth = scene(random.Random(77))
    result = detected(output / "model.onnx", image)
    for box in truth:
        best = max((entry for entry in result if LABELS[entry.category] == box.label), key=lambda entry: entry.score)
        place = Box(box.label, best.x_min, best.y_min, best.x_max, best.y_max)
        assert overlap(place, box) > 0.5


@pytest.mark.parametrize(
    ("pictures", "copies"), [(1, 1000), (12, 83), (100, 10), (166, 6), (500, 6), (501, 5), (3000, 1), (8000, 1)]
)
def test_few_pictures_get_more_copies(pictures: int, copies: int) -> None:
    assert detection.copies_of(pictures) == copies


def test_the_file_computes_what_the_head_computes() -> None:
    backbone = backbones.read(BACKBONE.read_bytes())
    maps = session_of(onnxruntime, graph.extractor(backbone))
    chance = numpy.random.default_rng(0)
    picture = chance.uniform(0, 255, (1, 224, 224, 3)).astype("float32")
    weights = network.initial(numpy, [32, 96, 1280], 2, 4)
    weights["out_bias"] = weights["out_bias"] + 4
    output, _ = network.forward(numpy, weights, maps.run(None, {"image": picture}))
    scores = 1 / (1 + numpy.exp(-output[0, ..., :2]))
    model = session_of(onnxruntime, graph.detector(backbone, weights, 2, {}))
    location, category, score = (values[0] for values in model.run(None, {"image": picture}))
    assert list(score) == sorted(score, reverse=True)
    row, column, label = numpy.unravel_index(scores.argmax(), scores.shape)
    assert score[0] == pytest.approx(scores.max(), abs=1e-5)
    assert category[0] == label
    distances = numpy.exp(numpy.minimum(output[0, row, column, 2:], network.LONGEST))
    middle = numpy.array([column + 0.5, row + 0.5] * 2)
    expected = numpy.clip((middle + distances * [-1, -1, 1, 1]) / 28, 0, 1)
    assert location[0] == pytest.approx(expected, abs=1e-4)
    places = [Box(str(int(name)), *edges) for name, edges in zip(category, location.tolist(), strict=True)]
    for number, box in enumerate(places):
        assert all(overlap(box, other) <= 0.5 + 1e-6 for other in places[:number] if other.label == box.label)


def test_a_picture_without_boxes_gives_none() -> None:
    backbone = backbones.read(BACKBONE.read_bytes())
    weights = network.initial(numpy, [32, 96, 1280], 2, 4)
    weights["out_bias"] = weights["out_bias"] - 20
    model = session_of(onnxruntime, graph.detector(backbone, weights, 2, {}))
    shapes = [values.shape for values in model.run(None, {"image": numpy.zeros((1, 224, 224, 3), "float32")})]
    assert shapes == [(1, 0, 4), (1, 0), (1, 0)]


def test_too_few_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert detection.main(dataset(tmp_path, 4)) == 1
    assert "4 are needed" in capsys.readouterr().out


def test_a_backbone_without_a_fine_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = tmp_path / "backbone.onnx"
    weights.write_bytes(small_backbone(maps=True))
    assert detection.main([*dataset(tmp_path, 4), f"--backbone={weights}"]) == 1
    assert "at least 8 x 8 cells" in capsys.readouterr().out


def test_continuing_gives_the_same_weights(tmp_path: Path) -> None:
    chance = numpy.random.default_rng(0)
    shape = (12, 8, 8)
    data = fitting.Data(
        (chance.normal(size=(*shape, 3)).astype("float16"),),
        [(Box(LABELS[number % 2], 0.1, 0.1, 0.3 + number / 20, 0.9),) for number in range(12)],
        LABELS[:2],
        8,
        numpy.ones(2, "float32"),
    )
    plan = fitting.FittingPlan(4, 2)

    def start() -> tuple[fitting.CheckpointState, network.Adam]:
        weights = network.initial(numpy, [3], 2, 0)
        return fitting.CheckpointState(weights, 0, dict(weights), -1.0, 0), network.Adam(numpy, weights)

    whole, optimizer = start()
    list(fitting.fit(numpy, data, whole, optimizer, 1, plan, lambda weights: 0.5))
    first, optimizer = start()
    running = fitting.fit(numpy, data, first, optimizer, 1, plan, lambda weights: 0.5)
    next(running)
    fitting.save(numpy, tmp_path / "detector.npz", "this", first, optimizer)
    second, optimizer = start()
    assert not fitting.load(numpy, tmp_path / "detector.npz", "another", second, optimizer)
    assert fitting.load(numpy, tmp_path / "detector.npz", "this", second, optimizer)
    list(fitting.fit(numpy, data, second, optimizer, 1, plan, lambda weights: 0.5))
    assert second.epoch == whole.epoch == 4
    assert all((second.best[name] == whole.best[name]).all() for name in whole.best)


def test_early_stopping() -> None:
    weights = network.initial(numpy, [3], 1, 0)
    state, optimizer = fitting.CheckpointState(weights, 0, dict(weights), -1.0, 0), network.Adam(numpy, weights)
    shape = (1, 8, 8)
    data = fitting.Data(
        (numpy.zeros((*shape, 3), "float16"),), [()], ["a"], 8, numpy.ones(1, "float32")
    )  # fmt: skip
    values = iter([0.1, 0.3, *[0.2] * 50])
    epochs = list(
        fitting.fit(numpy, data, state, optimizer, 0, fitting.FittingPlan(50, 1), lambda weights: next(values))
    )
    assert list(fitting.fit(numpy, data, state, optimizer, 0, fitting.FittingPlan(50, 1), lambda weights: 1.0)) == []
    assert len(epochs) == 2 + fitting.PATIENCE
    assert state.best_figure == 0.3
