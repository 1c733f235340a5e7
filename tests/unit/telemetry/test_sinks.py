"""Files rotate within their limits, and no reader, disk or terminal can block the process."""

from __future__ import annotations

import os
import pty
import resource
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from telemetry.logs.entry import ERROR, WARN, Entry, format_line
from telemetry.logs.rotation import DAY, older
from telemetry.logs.sinks import ConsoleSink, FileSink, Notice


def entry(message: str, time: float = 0.0) -> Entry:
    return Entry(1, time, 40, "rdk", "a.py:1", message)


LINE = len(format_line(entry("0000"))) + 1


def lines(path: Path) -> list[str]:
    return [line.split("\t")[4] for line in path.read_text().splitlines()]


def parts(path: Path) -> list[str]:
    """Return the messages of each file that belongs to the log at `path`, oldest file first."""
    return [" ".join(lines(item)) for item in [*older(path), path]]


def test_a_file_rotates_by_size_and_keeps_a_bounded_number(tmp_path: Path) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path, max_bytes=2 * LINE, keep=2)
    for number in range(9):
        sink.write(entry(f"{number:04}", number))
    sink.close()
    assert parts(path) == ["0004 0005", "0006 0007", "0008"]
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "machine.log",
        "machine.log.1970-01-01T00-00-06.000Z",
        "machine.log.1970-01-01T00-00-08.000Z",
    ]


def test_files_that_end_in_one_moment_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path, max_bytes=LINE)
    for number in range(4):
        sink.write(entry(f"{number:04}"))
    sink.close()
    assert parts(path) == ["0000", "0001", "0002", "0003"]


def test_a_file_is_continued_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "machine.log"
    for word in ("0001", "0002", "0003"):
        sink = FileSink(path, max_bytes=2 * LINE, keep=1)
        sink.write(entry(word))
        sink.close()
    assert parts(path) == ["0001 0002", "0003"]


@pytest.mark.parametrize("restarted", [False, True])
def test_the_first_message_of_a_day_begins_a_file(tmp_path: Path, restarted: bool) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path)
    for time, word in ((DAY - 1.0, "a"), (DAY - 0.1, "b"), (DAY + 0.0, "c"), (DAY - 5.0, "back"), (3.5 * DAY, "d")):
        if restarted:
            sink.close()
            sink = FileSink(path)
        sink.write(entry(word, time))
    sink.close()
    assert parts(path) == ["a b", "c back", "d"]  # a clock that is set back starts no new file
    assert [item.name for item in older(path)] == [
        "machine.log.1970-01-02T00-00-00.000Z",
        "machine.log.1970-01-04T12-00-00.000Z",
    ]


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    for name in ("machine.log.gz", "machine.log.1", "machine.log.2026-11-21", "other.log.1970-01-01T00-00-00.000Z"):
        (tmp_path / name).write_text("mine")
    sink = FileSink(tmp_path / "machine.log", max_bytes=LINE, keep=1)
    for number in range(5):
        sink.write(entry(f"{number:04}", number))
    sink.close()
    assert sum(path.read_text() == "mine" for path in tmp_path.iterdir()) == 4
    assert parts(tmp_path / "machine.log") == ["0003", "0004"]


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path, max_bytes=LINE)
    sink.write(entry("0001"))
    sink.write(entry("0002"))
    sink.close()
    assert {stat.S_IMODE(item.stat().st_mode) for item in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("how", ["rename", "unlink"])
def test_a_file_that_others_rotate_or_delete_is_reopened(tmp_path: Path, how: str) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path)
    sink.write(entry("before"))
    path.rename(tmp_path / "kept") if how == "rename" else path.unlink()
    assert sink.write(entry("after")) is None
    sink.close()
    assert lines(path) == ["after"]
    if how == "rename":
        assert lines(tmp_path / "kept") == ["before"]


def test_devices_are_not_rotated() -> None:
    sink = FileSink(Path("/dev/null"), max_bytes=LINE)
    for number in range(3):
        assert sink.write(entry(f"{number:04}")) is None
    sink.close()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


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


def test_a_full_disk_drops_messages_counts_them_and_is_reported_once() -> None:
    sink = FileSink(Path("/dev/full"))
    first = sink.write(entry("x"))
    assert first is not None
    assert first.message == (
        "the log file /dev/full cannot be written: No space left on device; messages are lost until it can be written"
    )
    assert sink.write(entry("x")) is None
    assert sink.dropped == 2
    sink.close()


def test_a_file_that_can_be_written_again_says_what_is_missing(tmp_path: Path) -> None:
    """The limit of the file's size simulates a full disk: a part of a line is written, then nothing."""
    path = tmp_path / "machine.log"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sink = FileSink(path)
    try:
        sink.write(entry("0001"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LINE + 10, limit[1]))
        assert sink.write(entry("0002")) == Notice(
            ERROR,
            f"the log file {path} cannot be written: only a part of a line could be written; "
            "messages are lost until it can be written",
        )
        assert sink.write(entry("0003")) is None
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert sink.write(entry("0004")) == Notice(
            WARN, f"the log file {path} can be written again; 2 messages are missing in it"
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    sink.close()
    text = path.read_text().splitlines()
    assert len(text) == 4
    assert [line.split("\t")[-1] for line in (text[0], text[3])] == ["0001", "0004"]
    assert text[2] == "(2 messages are missing here: only a part of a line could be written)"


def test_a_directory_that_vanishes_does_not_raise_and_writing_resumes(tmp_path: Path) -> None:
    home = tmp_path / "logs"
    home.mkdir()
    sink = FileSink(home / "l")
    sink.write(entry("0001"))
    (home / "l").unlink()
    home.rmdir()
    assert sink.write(entry("0002")) is not None
    assert sink.dropped == 1
    home.mkdir()
    assert sink.write(entry("0003")) is not None
    sink.close()
    text = (home / "l").read_text().splitlines()
    assert text[0] == "(1 messages are missing here: No such file or directory)"
    assert text[1].endswith("0003")


def test_a_file_that_cannot_be_rotated_goes_on_growing_and_says_so_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "machine.log"
    sink = FileSink(path, max_bytes=2 * LINE)

    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    notices = [sink.write(entry(f"{number:04}")) for number in range(5)]
    assert [notice is not None for notice in notices] == [False, False, True, False, True]
    assert notices[2] == Notice(ERROR, f"the log file {path} cannot be rotated: Permission denied")
    assert len(lines(path)) == 5
    monkeypatch.undo()
    for number in range(5, 9):
        sink.write(entry(f"{number:04}"))
    sink.close()
    assert " ".join(parts(path)) == " ".join(f"{number:04}" for number in range(9))
    assert len(older(path)) == 2


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
