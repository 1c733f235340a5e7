"""The trainer that fine-tunes, run with an interpreter that has PyTorch: this environment does not have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.trainers.small import Dataset, picture
from training.jobs.events import Metric, Progress, of_line
from training.trainers.finetune import training
from training.weights import BACKBONE

ROOT = Path(__file__).resolve().parents[5]
PYTHON = Path(os.environ.get("MACHINE_TORCH_PYTHON") or ROOT / ".venv" / ".torch" / "bin" / "python")
REASON = f"no interpreter with PyTorch: set MACHINE_TORCH_PYTHON, or make {PYTHON}"
needs_torch = [pytest.mark.skipif(not PYTHON.is_file(), reason=REASON), pytest.mark.limit(60), pytest.mark.slow]
TWO = ["red", "green"]
COMPARED = """
import numpy, onnxruntime, torch
from training.trainers import backbone as backbones
from training.trainers.finetune.network import Network
from training.weights import BACKBONE
content = BACKBONE.read_bytes()
backbone = backbones.read(content)
network = Network(torch, numpy, backbone, 13, "cpu")
pixels = numpy.random.default_rng(7).integers(0, 256, (2, 224, 224, 3)).astype("float32")
def difference(file):
    session = onnxruntime.InferenceSession(backbones.extractor(backbones.read(file)))
    rows, largest = torch.cat(network.groups(torch.tensor(pixels)), 1).detach().numpy(), 0.0
    for index in range(2):
        (cells,) = session.run(None, {"image": pixels[index : index + 1]})
        largest = max(largest, abs(rows[index] - cells[0].mean((1, 2))).max())
    return largest
print(difference(content))
with torch.no_grad():
    next(iter(network.trained.values())).mul_(1.5)
print(difference(network.changed()))
print(difference(content))
"""


def run(*words: str, **environment: str) -> list[str]:
    variables = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run([str(PYTHON), *words], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def train(dataset: Dataset, *words: str, **environment: str) -> list[str]:
    arguments = [word for word in dataset.arguments() if not word.startswith("--backbone")]
    module = "training.trainers.finetune.training"
    return run("-m", module, *arguments, f"--backbone={BACKBONE}", "--device=cpu", *words, **environment)


def colors(folder: Path, count: int = 8) -> Dataset:
    dataset = Dataset(folder, TWO)
    for label in TWO:
        for _ in range(count):
            dataset.add([label], label)
    return dataset


def answers(model: Path, image: Path) -> list[float]:
    script = (
        "import numpy, onnxruntime, sys, json; from PIL import Image; s = onnxruntime.InferenceSession(sys.argv[1]);"
        "p = numpy.asarray(Image.open(sys.argv[2]).convert('RGB').resize((224, 224), 2), 'float32')[None];"
        "print(json.dumps(s.run(['probability'], {'image': p})[0][0].tolist()))"
    )
    result: list[float] = json.loads(run("-c", script, str(model), str(image))[-1])
    return result


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return colors(tmp_path)


class TestWithTorch:
    pytestmark = needs_torch

    def test_features_are_those_of_onnx_runtime(self) -> None:
        before, after, other = map(float, run("-c", COMPARED))
        assert before < 1e-4
        assert after < 1e-4
        assert other > 1e-2

    def test_a_model(self, dataset: Dataset, tmp_path: Path) -> None:
        lines = train(dataset, "--epochs=2", "--layers=2")
        names = ["LICENSE", "NOTICE", "labels.txt", "model.onnx", "report.json"]
        assert sorted(path.name for path in dataset.output.iterdir()) == names
        assert (dataset.output / "labels.txt").read_text() == "red\ngreen\n"
        picture(dataset.chance, "green").save(tmp_path / "new.png")
        row = answers(dataset.output / "model.onnx", tmp_path / "new.png")
        assert sum(row) == pytest.approx(1, abs=1e-4)
        assert row[1] > 0.5
        report: dict[str, Any] = dataset.report
        assert report["test"]["accuracy"] == 1.0
        training_ids, test_ids = (set(report["pictures"][name]) for name in ("training", "test"))
        validation_ids = set(report["fine_tuning"]["validation"])
        assert (len(training_ids), len(test_ids), len(validation_ids)) == (12, 4, 4)
        assert not training_ids & test_ids
        assert validation_ids < training_ids
        assert len(report["fine_tuning"]["epochs"]) == 3
        events = [of_line(line) for line in lines]
        assert Metric("test_accuracy", 1.0) in events
        assert [event for event in events if isinstance(event, Progress)][-1] == Progress(16, 16)

    def test_an_interrupted_run_gives_the_same_model(self, dataset: Dataset, tmp_path: Path) -> None:
        """The first run is stopped after an epoch; another one continues there."""
        words = ("--epochs=2", "--layers=2")
        train(dataset, *words)
        whole = (dataset.output / "model.onnx").read_bytes(), dataset.report["fine_tuning"]["epochs"]
        folder = tmp_path / "checkpoints"
        folder.mkdir()
        stopped = (
            "import sys; from training.trainers.finetune import fitting, training; save = fitting.Fit._save\n"
            "def once(self):\n    save(self)\n    sys.exit(0)\n"
            "fitting.Fit._save = once\ntraining.main(sys.argv[1:])"
        )
        arguments = [word for word in dataset.arguments() if not word.startswith("--backbone")]
        options = (*arguments, f"--backbone={BACKBONE}", "--device=cpu", *words)
        run("-c", stopped, *options, TRAINING_CHECKPOINTS=str(folder))
        lines = train(dataset, *words, TRAINING_CHECKPOINTS=str(folder))
        assert "continuing after epoch 1" in lines
        assert dataset.report["fine_tuning"]["epochs"] == whole[1]
        assert (dataset.output / "model.onnx").read_bytes() == whole[0]
        other = train(dataset, "--epochs=1", "--layers=2", TRAINING_CHECKPOINTS=str(folder))
        assert not any("continuing" in line for line in other)

    def test_several_labels(self, tmp_path: Path) -> None:
        dataset = Dataset(tmp_path, TWO)
        for tags, top, bottom in ((TWO, "red", "green"), (["red"], "red", "blue"), (["green"], "green", "blue")):
            for _ in range(6):
                dataset.add(tags, top, bottom)
        train(dataset, "--epochs=1", "--layers=1", "--model_type=multi_label_classification", "--mirror=true")
        picture(dataset.chance, "red", "green").save(tmp_path / "new.png")
        assert min(answers(dataset.output / "model.onnx", tmp_path / "new.png")) > 0.5
        assert dataset.report["fine_tuning"]["mirror"] is True


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert training.main(colors(tmp_path).arguments()) == 1
    assert "this trainer needs PyTorch" in capsys.readouterr().out


def test_torch_is_not_imported_by_the_modules() -> None:
    script = "import sys, training.trainers.scripts.finetune; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=True
    )
    assert done.stdout == "[]\n"
