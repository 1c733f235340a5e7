"""What all trainers have in common as programs."""

from __future__ import annotations

import pytest

from training.trainers.detectors.boxes import Boxed
from training.trainers.examples import Example
from training.trainers.features import Unreadable
from training.trainers.program import distinct, options


def test_pictures_that_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    pixels = {"a": "1", "b": "2", "c": "1", "e": "3"}

    def read(picture: Example) -> tuple[str, str]:
        if picture.path not in pixels:
            raise Unreadable("it is damaged")
        return f"content of {picture.path}", pixels[picture.path]

    problems: dict[str, list[str]] = {"unreadable": [], "duplicates": []}
    listed = [Example(f"id-{name}", name, ()) for name in "abcde"]
    done = []
    for picture, content in distinct(listed, read, problems):
        assert content == f"content of {picture.path}"
        done.append((picture.id, sum(map(len, problems.values()))))
    assert done == [("id-a", 0), ("id-b", 0), ("id-e", 2)]
    assert problems == {"unreadable": ["id-d"], "duplicates": ["id-c"]}
    assert capsys.readouterr().out == "WARNING: the picture id-d cannot be read: it is damaged\n"


def test_pictures_with_boxes() -> None:
    boxed = Boxed("id", "path", ())
    assert list(distinct([boxed], lambda _: (None, "1"), {})) == [(boxed, None)]


def test_the_first_type_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    needed = ["--dataset_file=d", "--model_output_directory=m", "--labels_file=l"]
    assert options("", ("one", "two")).parse_args(needed).model_type == "one"
    with pytest.raises(SystemExit):
        options("", ("one", "two")).parse_args([*needed, "--model_type=three"])
    assert "invalid choice: 'three'" in capsys.readouterr().err
