"""The trainer that fine-tunes detectors, run with an interpreter that has PyTorch."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.unit.training.trainers.detectors.test_detection import LABELS, dataset, detected, scene
from tests.unit.training.trainers.finetune.test_finetune import needs_torch, run
from training.jobs.events import Metric, Progress, of_line
from training.trainers import backbone as backbones
from training.trainers.detectors.boxes import Box, overlap
from training.trainers.finetune import detection
from training.weights import BACKBONE

TRAIN = """
import sys
from training.trainers import detection as frozen
from training.trainers.detectors import fitting
from training.trainers.finetune import detection
frozen.COPIES, frozen.ENOUGH_COPIES = 2, 0
fitting.STEPS, fitting.LEAST_EPOCHS, fitting.LOOKS, detection.STEPS, detection.BATCH = 50, 24, 2, 3, 4
"""
CHANGED = f"""{TRAIN}
detection.NETWORK_RATE = 1e-3
judge = detection._FineTuning._judge
def judged(self, model, loss):
    judge(self, model, loss)
    self._history[0]["validation_mAP"] = -1.0  # so that a later epoch is better
detection._FineTuning._judge = judged
"""
in_another_environment = [needs_torch[0], pytest.mark.limit(180), pytest.mark.slow]
RUN = f"{CHANGED}sys.exit(detection.main(sys.argv[1:]))"
WORSE = f"""{TRAIN}
from pathlib import Path
judge = detection._FineTuning._judge
def kept(self, model, loss):
    judge(self, model, loss)
    if len(self._history) == 1:
        Path(sys.argv[1]).write_bytes(self._start.written(self._changed(), model.weights()))
detection._FineTuning._judge = kept
detection.HEAD_RATE = detection.NETWORK_RATE = 0.3
sys.exit(detection.main(sys.argv[2:]))
"""
STOPPED = f"""{CHANGED}
import os, signal
def stopped(self, model, loss):
    judged(self, model, loss)
    if len(self._history) == 2:
        os.kill(os.getpid(), signal.SIGTERM)
detection._FineTuning._judge = stopped
print("status", detection.main(sys.argv[1:]))
"""
COMPARED = """
import numpy, torch
from training.trainers.detectors import network
from training.trainers.finetune import detector
chance = numpy.random.default_rng(3)
weights = network.initial(numpy, [8, 12, 16], 2, 1)
for values in weights.values():
    values += 0.1 * chance.standard_normal(values.shape).astype("float32")
maps = [chance.standard_normal((2, side, side, count)).astype("float32") for side, count in ((8, 8), (4, 12), (2, 16))]
heat = chance.random((2, 8, 8, 2)).astype("float32")
heat[0, 3, 4, 1] = heat[1, 5, 2, 0] = 1
target = {"heat": heat, "distances": chance.standard_normal((2, 8, 8, 4)).astype("float32")}
target["weight"] = chance.random((2, 8, 8)).astype("float32")
importance = numpy.array([0.5, 1.5], "float32")
output, _ = network.forward(numpy, weights, maps)
value, slope = network.loss(numpy, output, target, importance)
tensors = {name: torch.tensor(values) for name, values in weights.items()}
other = detector.forward(torch, tensors, [torch.tensor(each).permute(0, 3, 1, 2) for each in maps])
leaf = torch.tensor(output, requires_grad=True)
goals = {name: torch.tensor(values) for name, values in target.items()}
result = detector.loss(torch, leaf, goals, torch.tensor(importance))
result.backward()
print(abs(other.numpy() - output).max(), abs(result.item() - value) / value, abs(leaf.grad.numpy() - slope).max())
"""


def arguments_in(folder: Path) -> list[str]:
    return [*dataset(folder, 16), "--device=cpu", "--epochs=2", "--layers=4"]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    return arguments_in(tmp_path)


def report_in(folder: Path) -> Any:
    return json.loads((folder / "output" / "report.json").read_text())


def onnxruntime_boxes(model: Path) -> Any:
    return detected(model, scene(random.Random(77))[0])


@dataclass(frozen=True)
class Trained:
    folder: Path
    lines: list[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A folder with the pictures and the model of an undisturbed training."""
    folder = tmp_path_factory.mktemp("trained")
    return Trained(folder, run("-c", RUN, *arguments_in(folder)))


class TestWithTorch:
    pytestmark = in_another_environment

    def test_head_and_loss_are_those_of_numpy(self) -> None:
        output, loss, slope = map(float, run("-c", COMPARED)[-1].split())
        assert output < 1e-4
        assert loss < 1e-5
        assert slope < 1e-5

    def test_a_detector(self, trained: Trained) -> None:
        tmp_path, lines = trained.folder, trained.lines
        names = ["LICENSE", "NOTICE", "labels.txt", "model.onnx", "report.json"]
        assert sorted(path.name for path in (tmp_path / "output").iterdir()) == names
        report = report_in(tmp_path)
        divided = [set(report["pictures"][name]) for name in ("training", "validation", "test")]
        assert [len(ids) for ids in divided] == [10, 3, 3]
        assert len(set.union(*divided)) == 16
        about = report["fine_tuning"]
        assert len(about["epochs"]) == 3
        figures = [epoch["validation_mAP"] for epoch in about["epochs"]]
        assert about["best_epoch"] > 0
        assert figures[about["best_epoch"]] == max(figures) > 0
        assert set(report["test"]["labels"]) == set(LABELS)
        assert any("at most 0 s left" in line for line in lines)
        events = [of_line(line) for line in lines]
        shares = [event.done / event.total for event in events if isinstance(event, Progress)]
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert {event.name for event in events if isinstance(event, Metric)} >= {"fine_tuning_validation_mAP", "loss"}
        image, truth = scene(random.Random(77))
        result = [entry for entry in detected(tmp_path / "output" / "model.onnx", image) if entry.score > 0.4]
        places = [Box(LABELS[each.category], each.x_min, each.y_min, each.x_max, each.y_max) for each in result]
        assert any(overlap(place, box) > 0.4 and place.label == box.label for place in places for box in truth)

    def test_a_stopped_run_continues_to_the_same_model(
        self, arguments: list[str], tmp_path: Path, trained: Trained
    ) -> None:
        folder = tmp_path / "checkpoints"
        folder.mkdir()
        assert "status 143" in run("-c", STOPPED, *arguments, TRAINING_CHECKPOINTS=str(folder))
        lines = run("-c", RUN, *arguments, TRAINING_CHECKPOINTS=str(folder))
        assert "continuing after epoch 1" in lines
        assert not any("pictures prepared" in line for line in lines)
        assert report_in(tmp_path)["fine_tuning"] == report_in(trained.folder)["fine_tuning"]
        assert len({(path / "output" / "model.onnx").read_bytes() for path in (tmp_path, trained.folder)}) == 1

    def test_training_that_makes_the_validation_worse_changes_nothing(
        self, arguments: list[str], tmp_path: Path
    ) -> None:
        run("-c", WORSE, str(tmp_path / "before.onnx"), *arguments, "--epochs=1")
        about = report_in(tmp_path)["fine_tuning"]
        assert about["epochs"][1]["validation_mAP"] < about["epochs"][0]["validation_mAP"]
        before, after = (onnxruntime_boxes(path) for path in (tmp_path / "before.onnx", tmp_path / "output/model.onnx"))
        assert before == after


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_torch(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert detection.main(arguments) == 1
    assert "this trainer needs PyTorch" in capsys.readouterr().out


def test_boxes_move_with_the_changes_of_a_picture() -> None:
    pixels = numpy.full((320, 320, 3), 128, "uint8")
    pixels[40:100, 20:120] = (255, 0, 0)
    box = Box("bar", 20 / 320, 40 / 320, 120 / 320, 100 / 320)
    backbone, seen = backbones.read(BACKBONE.read_bytes()), set()
    for seed in range(20):
        row = detection.example(numpy, pixels, [box], LABELS, backbone, random.Random(seed))
        red = row["picture"][..., 0] - row["picture"][..., 1] > 60
        for y, x, label in numpy.argwhere(row["heat"] == 1):
            seen.add((int(y), int(x)))
            assert LABELS[label] == "bar"
            down, across = (numpy.flatnonzero(red.any(axis=axis)) for axis in (1, 0))
            middle = numpy.array([x + 0.5, y + 0.5, x + 0.5, y + 0.5])
            edges = 8 * (middle + numpy.exp(row["distances"][y, x]) * [-1, -1, 1, 1])
            truth = [across[0], down[0], across[-1] + 1, down[-1] + 1]
            assert abs(edges - truth).max() < 3
    assert len(seen) > 10


def test_the_written_file_is_compared_by_its_best_box() -> None:
    output = numpy.full((8, 8, 6), -9.0)
    output[2, 5] = [-9, 1, 0, 0, 0, 0]  # one cell in each direction
    score = 1 / (1 + numpy.exp(-1.0))
    edges = numpy.array([[4.5, 1.5, 6.5, 3.5]]) / 8

    def difference(locations: Any, scores: list[float]) -> float:
        return detection.difference_of(numpy, output, locations, numpy.array(scores))

    assert difference(edges, [score]) < 1e-6
    assert difference(edges, [score - 0.1]) == pytest.approx(0.1)
    assert difference(edges + numpy.array([0, 0, 0.2, 0]), [score]) == pytest.approx(0.2)
    assert difference(numpy.zeros((0, 4)), []) == pytest.approx(score - 0.02)
