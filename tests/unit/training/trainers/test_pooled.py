"""Heads that score the cells of a picture: their fit, the choice between them and averages, and the file."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest
from PIL import Image

from tests.unit.training.trainers import small
from training.trainers import backbone as backbones
from training.trainers import classification, pooled
from training.trainers import onnx_messages as onnx
from training.trainers.choice import CANDIDATES, choose
from training.trainers.features import Extractor
from training.trainers.head import Examples

CHANCE = numpy.random.default_rng(0)


@pytest.mark.parametrize("sharpness", [0.5, 4.0])
def test_pooled_scores_are_between_the_mean_and_the_largest(sharpness: float) -> None:
    scores = CHANCE.normal(size=(5, 9, 3))
    value, shares = pooled.pooled(numpy, scores, sharpness)
    assert value == pytest.approx(numpy.log(numpy.exp(sharpness * scores).mean(axis=1)) / sharpness)
    assert (value >= scores.mean(axis=1)).all()
    assert (value <= scores.max(axis=1)).all()
    assert shares.sum(axis=1) == pytest.approx(numpy.ones((5, 3)))
    assert numpy.isfinite(pooled.pooled(numpy, 1e4 * scores, sharpness)[0]).all()


def test_the_shares_of_cells_are_the_derivatives() -> None:
    scores = CHANCE.normal(size=(1, 4, 1))
    _, shares = pooled.pooled(numpy, scores, 2.0)
    for cell in range(4):
        moved = scores.copy()
        moved[0, cell] += 1e-6
        change = pooled.pooled(numpy, moved, 2.0)[0] - pooled.pooled(numpy, scores, 2.0)[0]
        assert change[0, 0] / 1e-6 == pytest.approx(shares[0, cell, 0], abs=1e-4)


def scenes(count: int, cells: int = 36) -> tuple[Any, Any]:
    """Return cells with noise, in one of which there can be each of two objects, and which are there."""
    features = CHANCE.normal(size=(count, cells, 20))
    targets = CHANCE.integers(0, 2, (count, 2)).astype(float)
    for index in range(count):
        for label in range(2):
            features[index, CHANCE.integers(cells), label] += 8 * targets[index, label]
    return features, targets


def examples(features: Any, targets: Any) -> Examples:
    basis = pooled.basis_of(numpy, features.reshape(-1, features.shape[2]), [features.shape[2]])
    return Examples(features.mean(axis=1), targets, [features.shape[2]], False, basis.reduced(numpy, features))


def test_small_objects_are_noticed() -> None:
    features, targets = scenes(300)
    data = examples(features, targets)
    training, test = data.part(slice(0, 200)), data.part(slice(200, 300))
    fitted = pooled.fit(numpy, training.cells, training.targets, 4.0, 0.01, exclusive=False)
    predicted = fitted.probabilities(numpy, test.cells, exclusive=False)
    assert ((predicted > 0.5) == (test.targets > 0.5)).mean() > 0.95


def test_cells_are_chosen_for_small_objects_and_averages_for_surfaces() -> None:
    folds = numpy.arange(200) % 4
    choice = choose(numpy, examples(*scenes(200)), folds)
    assert choice.candidate.sharpness > 0
    assert set(choice.losses) == set(CANDIDATES)
    targets = numpy.eye(2)[numpy.arange(200) % 2]
    surfaces = CHANCE.normal(size=(200, 36, 20)) + 0.3 * targets[:, :1, None]
    assert choose(numpy, examples(surfaces, targets), folds).candidate.sharpness == 0


def test_weights_for_what_the_backbone_gives() -> None:
    features, targets = scenes(40)
    features *= numpy.arange(1, 21)
    basis = pooled.basis_of(numpy, features.reshape(-1, 20), [20])
    reduced = basis.reduced(numpy, features)
    fitted = pooled.fit(numpy, reduced, targets, 1.0, 0.1, exclusive=False)
    weights, biases = fitted.unreduced(basis)
    whole = pooled.pooled(numpy, features @ weights, 1.0)[0] + biases
    expected = fitted.probabilities(numpy, reduced, exclusive=False)
    assert 1 / (1 + numpy.exp(-whole)) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("count", [0, 1, 127, 128, 200, 1000, 1001])
def test_the_sample_is_from_all_parts_of_the_list(count: int) -> None:
    """Pictures are listed in the order of their capture, often one label after the other."""
    sample = pooled.sample_of(range(count))
    assert len(set(sample)) == min(pooled.SAMPLE, count)
    assert all(after - before in (count // 128, count // 128 + 1) for before, after in pairwise(sample))
    assert all(place < count / 128 for place in (*sample[:1], *(count - 1 - last for last in sample[-1:])))


def test_no_pictures_have_no_probabilities() -> None:
    features, targets = scenes(10)
    data = examples(features, targets)
    fitted = pooled.fit(numpy, data.cells, targets, 1.0, 0.1, exclusive=True)
    assert fitted.probabilities(numpy, data.cells[:0], exclusive=True).shape == (0, 2)


@pytest.mark.parametrize(
    ("changes", "grid"),
    [
        ({"maps": True}, (2, 2)),
        ({"maps": True, "finer": 4}, (2, 2)),
        ({"maps": True, "finer": 1}, (2, 2)),
        ({"maps": True, "finer": 5}, None),  # 3 x 3
        ({"maps": True, "finer": 16}, None),  # a single cell
        ({"maps": False}, None),
        ({"maps": False, "finer": 4}, None),
    ],
)
@pytest.mark.parametrize("planar", [True, False])
def test_grids_of_backbones(changes: dict[str, Any], grid: tuple[int, int] | None, planar: bool) -> None:
    assert backbones.read(small.backbone(planar=planar, **changes)).grid == grid


def test_unknown_and_too_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = backbones.read(small.backbone(maps=True))
    monkeypatch.setattr(backbones, "MOST_CELLS", 3)
    assert backbone.grid is None
    monkeypatch.setattr(backbones, "MOST_CELLS", 4)
    assert backbone.grid == (2, 2)
    backbone.model.graph.output[0].type.tensor_type.shape.dim[2].Clear()
    assert backbone.grid is None
    head = backbones.Head(b"", b"", 0, ["a"], False, 1.0)
    with pytest.raises(ValueError, match="no maps whose cells can be scored"):
        backbones.assembled(backbone, head, {})


def spotted(chance: random.Random, spots: list[str]) -> Image.Image:
    """Return a grey picture with a small square of each color at random places, which the average hides."""
    image = Image.new("RGB", (48, 48), (chance.randrange(100, 156),) * 3)
    places = [(x, y) for x in range(4) for y in range(4)]
    for color in spots:
        x, y = places.pop(chance.randrange(len(places)))
        image.paste(small.COLORS[color], (12 * x + 3, 12 * y + 3, 12 * x + 9, 12 * y + 9))
    return image


@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("kind", ["single", "multi"])
@pytest.mark.parametrize("finer", [0, 4])
def test_the_file_gives_what_was_tested(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    planar: bool,
    kind: str,
    finer: int,
) -> None:
    """The trainer itself compares the probabilities of the file with those of the head. Another start repeats them."""
    monkeypatch.setenv("TRAINING_CHECKPOINTS", str(tmp_path))
    monkeypatch.setattr(
        "training.trainers.choice.CANDIDATES", [candidate for candidate in CANDIDATES if candidate.sharpness]
    )
    dataset = small.Dataset(tmp_path, ["red", "green"])
    for number in range(48):
        labels = [["red"], ["green"], ["red", "green"]][number % (2 if kind == "single" else 3)]
        path = tmp_path / "picture.png"
        spotted(dataset.chance, labels).save(path)
        dataset.add(labels, "red", content=path.read_bytes())
    (tmp_path / "backbone.onnx").write_bytes(small.backbone(planar=planar, maps=True, finer=finer))
    assert classification.main(dataset.arguments(f"--model_type={kind}_label_classification")) == 0
    assert dataset.report["head"]["chosen"].startswith("cells, sharpness")
    assert dataset.report["test"]["accuracy"] > 0.8
    model = onnx.parse((dataset.output / "model.onnx").read_bytes())
    assert "GlobalMaxPool" in [node.op_type for node in model.graph.node]
    written = (dataset.output / "model.onnx").read_bytes()
    capsys.readouterr()
    assert classification.main(dataset.arguments(f"--model_type={kind}_label_classification")) == 0
    assert "continuing with the features of 48 pictures" in capsys.readouterr().out
    assert (dataset.output / "model.onnx").read_bytes() == written


def test_another_start_describes_cells_as_the_first_did(tmp_path: Path) -> None:
    """The pictures that would decide on the directions can be others by then."""
    dataset = small.Dataset(tmp_path, ["red", "green"])
    paths = [str(dataset.add(["red"], "red" if number < 20 else "green")) for number in range(40)]
    backbone = backbones.read(small.backbone(maps=True, finer=4))
    first = Extractor(numpy, onnxruntime, backbone, "", tmp_path)
    first.prepare([(path, path) for path in paths[:20]])
    expected = first.of(paths[0], paths[0])[0][1]
    first.save()
    second = Extractor(numpy, onnxruntime, backbone, "", tmp_path)
    assert second.resumed == 20
    second.prepare([(path, path) for path in paths[20:]])
    assert (second.of(paths[0], paths[0])[0][1] == expected).all()
    copy = Path(paths[0]).rename(tmp_path / "renamed.png")
    assert (second.of("renamed", str(copy))[0][1] == expected).all()
