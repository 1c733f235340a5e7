"""Copies of the trainers: complete, the same at each time, and able to start without this project."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from schema.errors import ErrorKind, MachineError
from training.client.trainers import REQUIREMENTS, ROOT, TRAINERS, trainer_archive
from training.environments.requirements import requirements_of
from training.trainers.scripts.standard import labels_of, run

IMPORTED = """
import runpy, sys
from pathlib import Path
sys.argv[0] = "training"
try:
    runpy.run_module("model.training", run_name="__main__")
finally:
    own = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] in ("training", "schema", "model", "cloud")]
    print([path for path in own if path and not Path(path).is_relative_to(Path.cwd())], len(own) > 5)
"""


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(trainer_archive(name))) as tar:
        tar.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("name", TRAINERS)
def test_a_copy_is_complete(tmp_path: Path, name: str) -> None:
    folder = unpacked(name, tmp_path / "copy")
    needs, _ = requirements_of(folder)
    assert needs is not None
    assert needs.lines == TRAINERS[name].requirements
    for path in ("LICENSE", "NOTICE", "README.md", "training/weights/NOTICE", "training/weights/mobilenet_v2.onnx"):
        assert (folder / path).stat().st_size > 100
    assert not (folder / "training" / "client").exists()
    assert not (folder / "training" / "engine").exists()


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="the extra ml is not installed")
@pytest.mark.parametrize(
    ("name", "annotations"),
    [("classification", "classification_annotations"), ("detection", "bounding_box_annotations")],
)
def test_a_copy_starts_without_this_project(tmp_path: Path, name: str, annotations: str) -> None:
    """It ends with an error of the trainer, because the dataset has one picture, which does not exist."""
    folder = unpacked(name, tmp_path / "copy")
    edges = {f"{axis}_{end}_normalized": number for number, end in enumerate(("min", "max")) for axis in "xy"}
    line = {"image_path": "/none.png", annotations: [{"annotation_label": "ok", **edges}]}
    (tmp_path / "dataset.jsonl").write_text(json.dumps(line) + "\n")
    words = [f"--dataset_file={tmp_path / 'dataset.jsonl'}", f"--model_output_directory={tmp_path / 'output'}"]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *words], cwd=folder, capture_output=True, text=True, env={}, check=False
    )
    assert done.returncode == 1, done.stderr
    *_, said, imported = done.stdout.splitlines()
    assert said.startswith("ERROR: "), done.stdout
    assert "0 different readable pictures" in said
    assert imported == "[] True"


def test_the_archive_is_always_the_same() -> None:
    first = trainer_archive("classification")
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        infos = tar.getmembers()
    assert [info.name for info in infos] == sorted(info.name for info in infos)
    assert {(info.mtime, info.uid, info.uname, info.mode) for info in infos} == {(0, 0, "", 0o644)}
    assert first[4:8] == bytes(4), "the time in the header of gzip"
    assert trainer_archive("classification") == first


def test_unknown_trainers() -> None:
    with pytest.raises(
        MachineError, match="there is no trainer 'none': choose one of classification, detection"
    ) as caught:
        trainer_archive("none")
    assert caught.value.kind is ErrorKind.NOT_FOUND


def test_requirements_of_copies_are_those_of_this_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = {Requirement(line).name: line for line in (*project["dependencies"], *project["optional-dependencies"]["ml"])}
    for line in REQUIREMENTS:
        assert own.get(Requirement(line).name, line) == line


def test_labels_of_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ['{"a": [{"annotation_label": "b"}, {"annotation_label": "a"}]}', '{"a": null}', "{}"]
    assert labels_of(lines, "a") == ["a", "b"]
    (tmp_path / "d").write_text("\n".join(lines))
    arguments = [f"--dataset_file={tmp_path / 'd'}", "--model_output_directory=o", "--seed=3"]
    seen: list[list[str]] = []

    def trainer(words: list[str]) -> int:
        file = next(word for word in words if word.startswith("--labels_file=")).partition("=")[2]
        seen.append([Path(file).read_text(), *words])
        return 7

    assert run(trainer, "a", ("x", "y"), arguments) == 7
    assert run(trainer, "a", ("x", "y"), [*arguments, "--labels= c ,d", "--model_type=y"]) == 7
    assert [words[0] for words in seen] == ['["a", "b"]', '["c", "d"]']
    assert [words[-2:] for words in seen] == [["--model_type=x", "--seed=3"], ["--model_type=y", "--seed=3"]]
    assert run(trainer, "a", ("x",), [*arguments, "--epochs=3"], ("epochs", "device")) == 7
    assert seen[-1][-2:] == ["--seed=3", "--epochs=3"]
    assert run(trainer, "none", ("x",), arguments) == 1
    assert capsys.readouterr().out == "ERROR: no picture of the dataset has a label\n"


def test_the_example_requires_what_it_imports() -> None:
    needs, remark = requirements_of(Path("examples", "training"))
    assert needs is not None
    assert (needs.lines, remark) == (("pillow>=10",), "")
