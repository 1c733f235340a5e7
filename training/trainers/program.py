"""What all trainers have in common as programs: their options, their output, and which pictures they leave out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from training.trainers.features import Unreadable
from training.weights import BACKBONE


class Listed(Protocol):
    """A picture of the dataset."""

    @property
    def id(self) -> str:
        """What the output and the report name it by."""
        ...


L = TypeVar("L", bound=Listed)
T = TypeVar("T")


def options(description: str | None, types: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with the options of all trainers; the first of `types` is the default type of model."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--dataset_file", type=Path, required=True)
    parser.add_argument("--model_output_directory", type=Path, required=True)
    parser.add_argument("--labels_file", type=Path, required=True, help="the labels, a JSON list")
    parser.add_argument("--model_type", choices=types, default=types[0])
    parser.add_argument("--backbone", type=Path, default=BACKBONE, help="pretrained weights, an ONNX file")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def distinct(
    listed: Iterable[L], read: Callable[[L], tuple[T, str]], problems: Mapping[str, list[str]]
) -> Iterator[tuple[L, T]]:
    """Yield the pictures that are readable and differ, with what `read` returns next to a digest of their pixels.

    The ids of the others are added to `unreadable` and `duplicates` of `problems`, before the next picture is yielded.
    A picture that occurred in training and test would make the test too good.
    """
    seen: set[str] = set()
    for picture in listed:
        try:
            content, pixels = read(picture)
        except Unreadable as error:
            say(f"WARNING: the picture {picture.id} cannot be read: {error}")
            problems["unreadable"].append(picture.id)
            continue
        if pixels in seen:
            problems["duplicates"].append(picture.id)
            continue
        seen.add(pixels)
        yield picture, content
