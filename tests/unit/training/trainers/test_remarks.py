"""Remarks of reports with the shipped weights: none where they see the labels, and a warning where they are weak.

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

COUNT: Final = 120  # pictures, of which the test gets more than 20
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
def test_a_strong_model_has_no_remark(
    tmp_path: Path, model_type: str, kinds: Sequence[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(4)
    pictures = []
    for number in range(COUNT):
        labels = kinds[number % len(kinds)]
        shape = "circle" if "circle" in labels else "square"
        pictures.append(drawn(chance, [shape, shape], "brown" if "brown" in labels else "grey"))
    report = trained(tmp_path, model_type, kinds, pictures).report
    assert report["remarks"] == []
    assert report["test"]["accuracy"] > 0.95
    assert "WARNING" not in capsys.readouterr().out


@pytest.mark.parametrize(("model_type", "kinds", "shapes"), [(SINGLE, SINGLE_WEAK, 3), (MULTI, MULTI_WEAK, 4)])
def test_a_weak_model_says_so(
    tmp_path: Path, model_type: str, kinds: Sequence[Sequence[str]], shapes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(4)
    pictures = []
    for number in range(COUNT):
        labels = kinds[number % len(kinds)]
        pictures.append(drawn(chance, two(chance, labels, shapes), "brown" if "brown" in labels else "grey"))
    report = trained(tmp_path, model_type, kinds, pictures).report
    accuracy = report["cross_validation"]["accuracy"]
    remark = f"For these labels, the backbone is weak: {accuracy:.0%} of the pictures are labelled rightly."
    assert report["remarks"][0].startswith(remark)
    assert f"WARNING: {report['remarks'][0]}" in capsys.readouterr().out.splitlines()
