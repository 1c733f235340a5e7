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

from runtime.engine.home import home
from runtime.engine.views import tables
from runtime.parts.data.export import FORMATS, Export, jsonl_line, parquet
from runtime.parts.data.files.names import OPEN
from runtime.parts.data.files.read import Content, capture_files, is_being_written, moment, read
from runtime.parts.data.rows import Selection, rows
from schema.errors import MachineError

WRITING: Final = "being written"
LEFT: Final = "left behind"
CUT: Final = "cut off"
DAMAGED: Final = "damaged"
UNREADABLE: Final = "unreadable"


@dataclass(slots=True)
class Seen:
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
class Sum:
    """The totals of all files of one method."""

    files: int = 0
    readings: int = 0
    size: int = 0
    first: datetime | None = None
    last: datetime | None = None
    states: dict[str, int] = field(default_factory=dict)

    def add(self, one: Seen) -> None:
        """Add a file to the totals."""
        self.files += 1
        self.readings += one.readings
        self.size += one.size
        self.first = min((m for m in (self.first, one.first) if m is not None), default=None)
        self.last = max((m for m in (self.last, one.last) if m is not None), default=None)
        if one.state:
            self.states[one.state] = self.states.get(one.state, 0) + 1


def folder_of(folder: Path | None) -> Path:
    """Return the capture folder. Raises click.ClickException if it does not exist."""
    found = folder or home(os.environ) / "capture"
    if not found.is_dir():
        raise click.ClickException(f"{found} is not there: name the folder that capture_dir says, or capture something")
    return found


def look(folder: Path) -> Iterator[Seen]:
    """Yield the facts about all capture files below a folder."""
    for path in capture_files(folder):
        writing = is_being_written(path)  # before reading, because it may be closed during that
        try:
            content = read(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Seen(path, _place(folder, path), state=UNREADABLE, reason=error.strerror or str(error))
            continue
        yield _seen(folder, content, writing=writing)


def _place(folder: Path, path: Path) -> str:
    return str(path.parent.relative_to(folder))


def _seen(folder: Path, content: Content, *, writing: bool) -> Seen:
    header, times = content.header, [one.metadata.time_requested for one in content.readings]
    source = _place(folder, content.path)
    if header is not None:
        source = f"{header.component_type}/{header.component_name} {header.method_name}"
    seen = Seen(
        content.path, source, len(content.readings), content.path.stat().st_size if content.path.exists() else 0
    )
    if times:
        seen.first, seen.last = moment(times[0]), moment(times[-1])
    if writing:
        seen.state = WRITING
    elif content.damage is not None and not content.cut:
        seen.state, seen.reason = DAMAGED, content.damage.message
    elif content.damage is not None:
        seen.state, seen.reason = CUT, content.damage.message
    elif content.path.suffix == OPEN:
        seen.state = LEFT
    return seen


def show(folder: Path | None, *, files: bool, as_json: bool) -> int:
    """Run `machine data ls`, and return the exit code."""
    root = folder_of(folder)
    found = list(look(root))
    bad = [one for one in found if one.state in (DAMAGED, UNREADABLE) or (one.state == CUT and one.path.suffix != OPEN)]
    if as_json:
        click.echo(tables.one_line({"folder": str(root), "files": [_json(one) for one in found]}))
        return int(bool(bad))
    if not found:
        click.echo(f"{root}: nothing was captured yet")
        return 0
    for line in _files(root, found) if files else _sums(found):
        click.echo(line)
    for one in found:
        if one.reason:
            click.echo(f"{one.path}: {one.state} after {one.readings} whole readings: {one.reason}", err=True)
    return int(bool(bad))


def _json(one: Seen) -> Mapping[str, Any]:
    return {
        "path": str(one.path),
        "source": one.source,
        "readings": one.readings,
        "bytes": one.size,
        "first": one.first.isoformat() if one.first else None,
        "last": one.last.isoformat() if one.last else None,
        "state": one.state or "closed",
        "reason": one.reason,
    }


def _sums(found: list[Seen]) -> list[str]:
    sums: dict[str, Sum] = {}
    for one in found:
        sums.setdefault(one.source, Sum()).add(one)
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
        for source, total in sorted(sums.items())
    ]
    return tables.table(("CAPTURED", "READINGS", "FILES", "BYTES", "FIRST", "LAST", ""), lines)


def _files(root: Path, found: list[Seen]) -> list[str]:
    lines = [
        (str(one.path.relative_to(root)), str(one.readings), str(one.size), _time(one.first), one.state)
        for one in found
    ]
    return tables.table(("FILE", "READINGS", "BYTES", "FIRST", ""), lines)


def _time(when: datetime | None) -> str:
    return when.astimezone().isoformat(sep=" ", timespec="seconds") if when is not None else ""


def tail(folder: Path | None, count: int, selection: Mapping[str, Any]) -> None:
    """Run `machine data tail`."""
    for row in heapq.nlargest(count, rows(folder_of(folder), Selection(**selection)), key=_when)[::-1]:
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
        raise click.UsageError(f"{out} does not tell a format: add --format csv, jsonl or parquet")
    if kind == "parquet" and out is None:
        raise click.UsageError("Parquet is no text: add -o FILE")
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
            click.echo(f"{content.path}: {whole} whole readings are exported: {content.damage}", err=True)
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
