"""Remarks of reports with the shipped weights: where they are weak, the report says so, and only there.

Each picture has two shapes. A frozen backbone sees which shapes there are, and in which color. Whether they are the
same is a relation between two places, of which it sees little.
"""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from PIL import Image, ImageDraw

from tests.unit.training.trainers.small import Dataset
from training.trainers import classification
from training.trainers.classification import MULTI, SINGLE
from training.weights import BACKBONE

COUNT: Final = 60  # pictures; another remark says that the test has only 12 of them
WEAKNESS: Final = (
    "For these labels, the backbone is weak",
    "The model is hardly better than always answering the same",
)
SIDE: Final = 96
DARK: Final = (60, 60, 90)
BACKGROUNDS: Final = {"grey": (210, 210, 200), "brown": (120, 90, 60)}
SHAPES: Final = ("circle", "square", "triangle", "cross")


def drawn(chance: random.Random, shapes: Sequence[str], background: str = "grey") -> bytes:
    """Return a picture of two shapes, each at a random place in its half."""
    image = Image.new("RGB", (SIDE, SIDE), BACKGROUNDS[background])
    pen = ImageDraw.Draw(image)
    for shape, middle in zip(shapes, (26, 70), strict=True):
        x, y, size = middle + chance.randint(-8, 8), 48 + chance.randint(-25, 25), chance.randint(9, 14)
        if shape == "circle":
            pen.ellipse((x - size, y - size, x + size, y + size), fill=DARK)
        elif shape == "square":
            pen.rectangle((x - size, y - size, x + size, y + size), fill=DARK)
        elif shape == "triangle":
            pen.polygon([(x, y - size), (x + size, y + size), (x - size, y + size)], fill=DARK)
        else:
            pen.line((x - size, y, x + size, y), fill=DARK, width=7)
            pen.line((x, y - size, x, y + size), fill=DARK, width=7)
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def two(chance: random.Random, labels: Sequence[str], kinds: int) -> list[str]:
    """Return two shapes that are the same if that is among the labels."""
    first, second = chance.sample(SHAPES[:kinds], 2)
    return [first, first if "same" in labels else second]


def trained(folder: Path, model_type: str, kinds: Sequence[Sequence[str]], pictures: Sequence[bytes]) -> Dataset:
    """Train with the shipped weights on pictures whose labels are those of `kinds` in turn."""
    dataset = Dataset(folder, sorted({label for labels in kinds for label in labels}))
    for number, content in enumerate(pictures):
        dataset.add(list(kinds[number % len(kinds)]), "", content=content)
    assert classification.main(dataset.arguments(f"--backbone={BACKBONE}", f"--model_type={model_type}")) == 0
    return dataset


SINGLE_STRONG: Final = (["circle"], ["square"])
MULTI_STRONG: Final = (["circle"], ["brown"], ["brown", "circle"])
SINGLE_WEAK: Final = (["same"], ["different"])
MULTI_WEAK: Final = (["same"], ["brown"], ["brown", "same"])


@pytest.mark.parametrize(("model_type", "kinds"), [(SINGLE, SINGLE_STRONG), (MULTI, MULTI_STRONG)])
def test_strong_weights_have_no_remark(
    tmp_path: Path, model_type: str, kinds: Sequence[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(3)
    pictures = []
    for number in range(COUNT):
        labels = kinds[number % len(kinds)]
        shape = "circle" if "circle" in labels else "square"
        pictures.append(drawn(chance, [shape, shape], "brown" if "brown" in labels else "grey"))
    report = trained(tmp_path, model_type, kinds, pictures).report
    (few,) = report["remarks"]
    assert few.startswith("The test has only 12 pictures")
    assert report["cross_validation"]["accuracy"] > 0.95
    output = capsys.readouterr().out
    assert not any(words in output for words in WEAKNESS)


@pytest.mark.parametrize(("model_type", "kinds", "shapes"), [(SINGLE, SINGLE_WEAK, 3), (MULTI, MULTI_WEAK, 4)])
def test_weak_weights_have_a_remark(
    tmp_path: Path, model_type: str, kinds: Sequence[Sequence[str]], shapes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(3)
    pictures = []
    for number in range(COUNT):
        labels = kinds[number % len(kinds)]
        pictures.append(drawn(chance, two(chance, labels, shapes), "brown" if "brown" in labels else "grey"))
    report = trained(tmp_path, model_type, kinds, pictures).report
    remark = report["remarks"][0]
    accuracy = f"{report['cross_validation']['accuracy']:.0%} of the pictures are labelled rightly"
    assert remark.startswith(tuple(f"{words}: {accuracy}" for words in WEAKNESS))
    assert f"WARNING: {remark}" in capsys.readouterr().out.splitlines()
