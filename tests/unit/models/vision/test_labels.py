"""Label files, and labels in models."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.mlmodel.labels import label, of_names, parse, read
from schema.errors import ErrorKind, MachineError


def test_the_number_of_a_line_is_the_class() -> None:
    labels = parse("background\n person \n\ncar\n\n")
    assert labels == ("background", "person", "", "car")
    assert [label(labels, index) for index in (1, 2, 3, 4, -1)] == ["person", "2", "car", "4", "-1"]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("{0: 'person', 2: 'car'}", ("person", "1", "car")),
        ("{}", ()),
        ("", ()),
        ("['a']", ()),
        ("{'a': 'b'}", ()),
        ("{-1: 'b'}", ()),
        ("{1000000000: 'b'}", ()),
        ("__import__('os')", ()),
    ],
)
def test_labels_within_a_model(text: str, labels: tuple[str, ...]) -> None:
    assert of_names(text) == labels


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b"\n\n", "empty"), (b"\xff\xfe", "not UTF-8"), ("folder", "Is a dir")],
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes | str | None, words: str) -> None:
    path = tmp_path / "labels.txt"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(MachineError, match=words) as caught:
        read(str(path))
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("\ufeffcat\ndog\n", ("cat", "dog")),  # written by editors on Windows
        ("a\u2028b\nc\x85d\ne\x0cf", ("a\u2028b", "c\x85d", "e\x0cf")),  # no line ends
        ("a\r\nb\rc", ("a", "b", "c")),
        ("", ()),
        ("\ufeff\n", ()),
    ],
)
def test_lines_of_label_files(text: str, labels: tuple[str, ...]) -> None:
    assert parse(text) == labels
