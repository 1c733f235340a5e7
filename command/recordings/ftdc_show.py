"""The implementation of the commands of `machine ftdc`."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

import click

from command.recordings.ftdc_read import GAP, chosen, find, joined, load, matching, shown
from schema import MachineError
from support.text.terminal import table
from telemetry.metrics import Recording, Series

P = ParamSpec("P")

USUAL: Final = (
    "proc.*.usercpusecs", "proc.*.systemcpusecs", "proc.*.rssmb", "trio.latems", "trio.tasksliving", "rpc.*.calls",
    "rpc.*.errors", "*/*.state",
)  # fmt: skip
"""Patterns of the quantities that are plotted by default, few enough for a clear picture."""


def _report_errors(function: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that a MachineError is printed on standard error and the exit code is 1."""

    @wraps(function)
    def command(*arguments: P.args, **keywords: P.kwargs) -> None:
        try:
            function(*arguments, **keywords)
        except MachineError as error:
            click.echo(f"machine: {error}", err=True)
            sys.exit(1)

    return command


@_report_errors
def list_files(files: Sequence[Path], home: Path | None) -> None:
    """Print a line for each file."""
    rows = []
    for path in find(files, home):
        recording = load(path)
        rows.append(
            (
                clock(recording.first) if recording.samples else "",
                _span(recording),
                str(recording.samples),
                str(len(recording.series)),
                str(path.stat().st_size),
                f"{path}{f' ({recording.problem})' if recording.problem else ''}",
            )
        )
    click.echo("\n".join(table(("FROM (UTC)", "SECONDS", "SAMPLES", "QUANTITIES", "BYTES", "FILE"), rows)))


@_report_errors
def show(files: Sequence[Path], home: Path | None, patterns: Sequence[str]) -> None:
    """Print a table of all quantities."""
    rows = []
    for name, series in sorted(matching(_read(chosen(files, home)), patterns).items()):
        quantity = shown(name, series)
        values = [value for _, value in quantity.points if not math.isnan(value)]
        if not values:
            continue
        mean = math.fsum(values) / len(values)
        rows.append((name, *map(_number, (min(values), mean, max(values), values[-1])), quantity.unit))
    click.echo("\n".join(table(("QUANTITY", "MINIMUM", "MEAN", "MAXIMUM", "LAST", "UNIT"), rows)))


@_report_errors
def plot(files: Sequence[Path], home: Path | None, patterns: Sequence[str], output: Path | None) -> None:
    """Plot quantities as SVG."""
    from support import PlottedQuantity, panels_of, render_plot

    paths = chosen(files, home)
    series = matching(_read(paths), patterns or USUAL)
    begin = min(samples.times[0] for samples in series.values())
    channels = []
    for name, samples in sorted(series.items()):
        quantity = shown(name, samples)
        points: list[tuple[float, float]] = []
        before = None
        for when, value in quantity.points:
            if before is not None and when - before > GAP:
                points.append(((before - begin) / 1e9, math.nan))
            points.append(((when - begin) / 1e9, value))
            before = when
        if patterns or any(value for _, value in points):  # plot constant zeros only on request
            # quantities of one kind share a pair of axes
            channels.append(PlottedQuantity(name, quantity.unit or name.rpartition(".")[2], False, points))
    title = f"{paths[-1].name} from {clock(begin)} UTC"
    _write(output, render_plot(title, panels_of(channels)))


@_report_errors
def export(files: Sequence[Path], home: Path | None, patterns: Sequence[str], form: str, output: Path | None) -> None:
    """Write all samples as recorded."""
    series = matching(_read(chosen(files, home)), patterns)
    samples: dict[int, dict[str, float]] = {}
    for name, quantity_samples in series.items():
        for when, value in zip(quantity_samples.times, quantity_samples.values, strict=True):
            samples.setdefault(when, {})[name] = value
    ordered = sorted(samples.items())
    _write(output, _csv(list(series), ordered) if form == "csv" else _jsonl(ordered))


def _csv(names: Sequence[str], samples: Iterable[tuple[int, Mapping[str, float]]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *names])
    for when, values in samples:
        writer.writerow([clock(when), *(_number(values[name]) if name in values else "" for name in names)])
    return text.getvalue()


def _jsonl(samples: Iterable[tuple[int, Mapping[str, float]]]) -> str:
    return "".join(
        json.dumps({"time": clock(when), **{name: _plain(value) for name, value in values.items()}}) + "\n"
        for when, values in samples
    )


def _read(paths: Sequence[Path]) -> dict[str, Series]:
    recordings = []
    for path in paths:
        recording = load(path)
        if recording.problem:
            click.echo(
                f"machine: {path}: {recording.problem}; the {recording.samples} samples before that point are used",
                err=True,
            )
        recordings.append(recording)
    return joined(recordings)


def _write(output: Path | None, text: str) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text)
    except OSError as error:
        raise MachineError(f"{output} cannot be written: {error.strerror}") from None


def clock(nanoseconds: int) -> str:
    """Format a time in nanoseconds since 1970 in UTC, with milliseconds."""
    when = datetime.fromtimestamp(nanoseconds // 1_000_000 / 1000, UTC)
    return when.isoformat(sep="T", timespec="milliseconds").removesuffix("+00:00") + "Z"


def _span(recording: Recording) -> str:
    return f"{(recording.last - recording.first) / 1e9:.0f}"


def _number(value: float) -> str:
    """Format a number with seven digits, the precision of the recording format."""
    return f"{value:.7g}"


def _plain(value: float) -> Any:
    """Return a number for JSON: None for infinity and NaN."""
    return float(_number(value)) if math.isfinite(value) else None
