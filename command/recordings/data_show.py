"""The implementation of the commands of `machine data`."""

from __future__ import annotations

import heapq
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from command.output import print_json
from engine import home
from runtime.parts import (
    FORMATS,
    OPEN,
    Content,
    Export,
    Selection,
    capture_files,
    captured_rows,
    is_being_written,
    jsonl_line,
    moment,
    parquet,
    read_capture_file,
)
from schema import MachineError
from support.text import terminal

WRITING: Final = "being written"
LEFT: Final = "left behind"
CUT: Final = "cut off"
DAMAGED: Final = "damaged"
UNREADABLE: Final = "unreadable"


@dataclass(slots=True)
class FileFacts:
    """The facts about a capture file that are shown."""

    path: Path
    source: str
    readings: int = 0
    size: int = 0
    first: datetime | None = None
    last: datetime | None = None
    state: str = ""
    reason: str = ""


@dataclass(slots=True)
class Totals:
    """The totals of all files of one method."""

    files: int = 0
    readings: int = 0
    size: int = 0
    first: datetime | None = None
    last: datetime | None = None
    states: dict[str, int] = field(default_factory=dict)

    def add(self, file: FileFacts) -> None:
        """Add a file to the totals."""
        self.files += 1
        self.readings += file.readings
        self.size += file.size
        self.first = min((time for time in (self.first, file.first) if time is not None), default=None)
        self.last = max((time for time in (self.last, file.last) if time is not None), default=None)
        if file.state:
            self.states[file.state] = self.states.get(file.state, 0) + 1


def folder_of(folder: Path | None) -> Path:
    """Return the capture folder. Raises click.ClickException if it does not exist."""
    capture_folder = folder or home(os.environ) / "capture"
    if not capture_folder.is_dir():
        raise click.ClickException(
            f"{capture_folder} does not exist: give capture_dir of the data manager, or capture data first"
        )
    return capture_folder


def facts_of_files(folder: Path) -> Iterator[FileFacts]:
    """Yield the facts about all capture files below a folder."""
    for path in capture_files(folder):
        writing = is_being_written(path)  # before reading, because it may be closed during that
        try:
            content = read_capture_file(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield FileFacts(path, _folder_name(folder, path), state=UNREADABLE, reason=error.strerror or str(error))
            continue
        yield _facts_of(folder, content, writing=writing)


def _folder_name(folder: Path, path: Path) -> str:
    return str(path.parent.relative_to(folder))


def _facts_of(folder: Path, content: Content, *, writing: bool) -> FileFacts:
    header, times = content.header, [reading.metadata.time_requested for reading in content.readings]
    source = _folder_name(folder, content.path)
    if header is not None:
        source = f"{header.component_type}/{header.component_name} {header.method_name}"
    facts = FileFacts(
        content.path, source, len(content.readings), content.path.stat().st_size if content.path.exists() else 0
    )
    if times:
        facts.first, facts.last = moment(times[0]), moment(times[-1])
    if writing:
        facts.state = WRITING
    elif content.damage is not None and not content.cut:
        facts.state, facts.reason = DAMAGED, content.damage.message
    elif content.damage is not None:
        facts.state, facts.reason = CUT, content.damage.message
    elif content.path.suffix == OPEN:
        facts.state = LEFT
    return facts


def show(folder: Path | None, *, files: bool, as_json: bool) -> int:
    """Run `machine data ls`, and return the exit code."""
    root = folder_of(folder)
    all_files = list(facts_of_files(root))
    damaged = [file for file in all_files if _is_damaged(file)]
    if as_json:
        print_json({"folder": str(root), "files": [_json(file) for file in all_files]})
        return int(bool(damaged))
    if not all_files:
        click.echo(f"{root}: no captured data")
        return 0
    for line in _files(root, all_files) if files else _totals(all_files):
        click.echo(line)
    for file in all_files:
        if file.reason:
            click.echo(f"{file.path}: {file.state} after {file.readings} complete readings: {file.reason}", err=True)
    return int(bool(damaged))


def _is_damaged(file: FileFacts) -> bool:
    return file.state in (DAMAGED, UNREADABLE) or (file.state == CUT and file.path.suffix != OPEN)


def _json(file: FileFacts) -> Mapping[str, Any]:
    return {
        "path": str(file.path),
        "source": file.source,
        "readings": file.readings,
        "bytes": file.size,
        "first": file.first.isoformat() if file.first else None,
        "last": file.last.isoformat() if file.last else None,
        "state": file.state or "closed",
        "reason": file.reason,
    }


def _totals(files: list[FileFacts]) -> list[str]:
    totals: dict[str, Totals] = {}
    for file in files:
        totals.setdefault(file.source, Totals()).add(file)
    lines = [
        (
            source,
            str(total.readings),
            str(total.files),
            str(total.size),
            _time(total.first),
            _time(total.last),
            ", ".join(f"{count} {state}" for state, count in total.states.items()),
        )
        for source, total in sorted(totals.items())
    ]
    return terminal.table(("CAPTURED", "READINGS", "FILES", "BYTES", "FIRST", "LAST", ""), lines)


def _files(root: Path, files: list[FileFacts]) -> list[str]:
    lines = [
        (str(file.path.relative_to(root)), str(file.readings), str(file.size), _time(file.first), file.state)
        for file in files
    ]
    return terminal.table(("FILE", "READINGS", "BYTES", "FIRST", ""), lines)


def _time(when: datetime | None) -> str:
    return when.astimezone().isoformat(sep=" ", timespec="seconds") if when is not None else ""


def tail(folder: Path | None, count: int, selection: Mapping[str, Any]) -> None:
    """Run `machine data tail`."""
    for row in heapq.nlargest(count, captured_rows(folder_of(folder), Selection(**selection)), key=_when)[::-1]:
        click.echo(jsonl_line(row, None))


def _when(row: Any) -> datetime:
    when: datetime = row.facts["time_requested"]
    return when


def export(
    folder: Path | None, kind: str | None, out: Path | None, media: Path | None, selection: Mapping[str, Any]
) -> None:
    """Run `machine data export`."""
    kind = kind or (out.suffix.lstrip(".") if out is not None else "csv")
    if kind not in (*FORMATS, "parquet"):
        raise click.UsageError(f"the suffix of {out} is not a format: add --format csv, jsonl or parquet")
    if kind == "parquet" and out is None:
        raise click.UsageError("Parquet is a binary format: add -o FILE")
    todo = Export(folder_of(folder), Selection(**selection), media)
    try:
        if media is not None:
            media.mkdir(parents=True, exist_ok=True)
        if out is None:
            FORMATS[kind](todo, sys.stdout)
        else:
            with _whole(out) as part:
                if kind == "parquet":
                    parquet(todo, part)
                else:
                    with part.open("w", encoding="utf-8", newline="") as file:
                        FORMATS[kind](todo, file)
    except MachineError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or out}: {error.strerror}") from None
    for content in todo.damaged:
        if not is_being_written(content.path):
            whole = len(content.readings)
            click.echo(f"{content.path}: {whole} complete readings were exported: {content.damage}", err=True)
    pictures = f", {todo.media_files} files in {media}" if media is not None else ""
    click.echo(f"{todo.rows} readings{pictures}", err=True)


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `out` at the end of the context, and is removed after an exception."""
    part = out.with_name(f"{out.name}.part")
    try:
        yield part
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
