"""Files rotate within bounds, and no reader, disk or terminal can stop the process."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.entry import Entry, format_line
from telemetry.sinks import ConsoleSink, FileSink


def entry(message: str) -> Entry:
    return Entry(1, 0.0, 40, "rdk", "a.py:1", message)


LINE = len(format_line(entry("0000"))) + 1


def lines(path: Path) -> list[str]:
    return [line.split("\t")[4] for line in path.read_text().splitlines()]


def test_a_file_rotates_by_size_and_keeps_a_bounded_number(tmp_path: Path) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path, max_bytes=2 * LINE, keep=2)
    for number in range(9):
        sink.write(entry(f"{number:04}"))
    sink.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["machine.log", "machine.log.1", "machine.log.2"]
    assert lines(path) == ["0008"]
    assert lines(tmp_path / "machine.log.1") == ["0006", "0007"]
    assert lines(tmp_path / "machine.log.2") == ["0004", "0005"]


def test_a_file_is_continued_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "machine.log"
    for word in ("0001", "0002", "0003"):
        sink = FileSink(path, max_bytes=2 * LINE, keep=1)
        sink.write(entry(word))
        sink.close()
    assert lines(tmp_path / "machine.log.1") == ["0001", "0002"]
    assert lines(path) == ["0003"]


def test_a_message_larger_than_the_limit_has_a_file_of_its_own(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "l", max_bytes=10, keep=1)
    sink.write(entry("x" * 100))
    sink.close()
    assert [p.name for p in tmp_path.iterdir()] == ["l"]


def test_keeping_none_starts_over(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "l", max_bytes=LINE, keep=0)
    sink.write(entry("0001"))
    sink.write(entry("0002"))
    sink.close()
    assert lines(tmp_path / "l") == ["0002"]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_drops_and_counts() -> None:
    sink = FileSink(Path("/dev/full"))
    sink.write(entry("x"))
    sink.write(entry("x"))
    assert sink.dropped == 2
    sink.close()


def test_a_directory_that_vanishes_does_not_raise_and_writing_resumes(tmp_path: Path) -> None:
    home = tmp_path / "logs"
    home.mkdir()
    sink = FileSink(home / "l", max_bytes=LINE, keep=1)
    sink.write(entry("0001"))
    (home / "l").unlink()
    home.rmdir()
    sink.write(entry("0002"))
    assert sink.dropped == 1
    home.mkdir()
    sink.write(entry("0003"))
    sink.close()
    assert lines(home / "l") == ["0003"]


def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileSink(tmp_path / "missing" / "l")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            pass


def test_a_pipe_gets_plain_lines(pipe: tuple[int, int]) -> None:
    ConsoleSink(pipe[1]).write(entry("hello"))
    assert os.read(pipe[0], 1000).decode() == format_line(entry("hello")) + "\n"


def test_a_reader_that_stands_still_costs_messages_not_time(pipe: tuple[int, int]) -> None:
    sink = ConsoleSink(pipe[1])
    for _ in range(1000):
        sink.write(entry("x" * 500))
    assert 700 < sink.dropped < 1000
    dropped = sink.dropped
    os.read(pipe[0], 1 << 20)
    sink.write(entry("after"))
    text = os.read(pipe[0], 1 << 20).decode()
    assert f"({dropped} messages were dropped" in text
    assert text.endswith("after\n")
    assert sink.dropped == 0


def test_a_line_cut_by_a_full_pipe_is_ended_before_the_next(pipe: tuple[int, int]) -> None:
    sink = ConsoleSink(pipe[1])
    sink.write(entry("x" * 100_000))  # a pipe holds 65,536 bytes
    assert sink.dropped == 1
    os.read(pipe[0], 1 << 20)
    sink.write(entry("after"))
    assert os.read(pipe[0], 1 << 20).decode().startswith("\n(1 messages")


def test_a_reader_that_is_gone_is_ignored(pipe: tuple[int, int]) -> None:
    sink = ConsoleSink(pipe[1])
    os.close(pipe[0])
    sink.write(entry("x"))
    assert sink.dropped == 1


def test_colour_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    leader, follower = pty.openpty()
    try:
        ConsoleSink(follower).write(entry("x"))
        assert b"\x1b[31mERROR" in os.read(leader, 1000)
        monkeypatch.setenv("NO_COLOR", "1")
        ConsoleSink(follower).write(entry("x"))
        assert b"\x1b" not in os.read(leader, 1000)
    finally:
        os.close(leader)
        os.close(follower)
