"""`machine check`: everything that is wrong with a configuration file, found without starting anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from nursery_graph.plan import knots
from runtime.reconfigure import Classes, Directory
from runtime.registry import Registry
from runtime.source import FileSource, decode_text
from schema.attributes import decode
from schema.errors import ConfigError, ConfigErrors, MachineError
from schema.frames import WORLD
from schema.machine import MachineDocument, ResourceEntry
from schema.report import Report, did_you_mean, join
from schema.substitution import fill
from telemetry.rules import from_document


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one file."""

    path: str
    problems: tuple[ConfigError, ...] = ()
    """What makes an entry or the whole document unusable."""
    warnings: tuple[ConfigError, ...] = ()
    """What is probably not meant."""
    resources: int = 0
    """Components and services that can be used as far as can be told here."""

    def as_json(self) -> dict[str, Any]:
        """For programs: `ok`, and lists of `path`, `reason`, `value`, `remedy`."""
        return {
            "path": self.path,
            "ok": not self.problems,
            "resources": self.resources,
            "problems": [_finding(problem) for problem in self.problems],
            "warnings": [_finding(warning) for warning in self.warnings],
        }


def _finding(error: ConfigError) -> dict[str, Any]:
    finding = {"path": error.path, "reason": error.reason, "value": error.value, "remedy": error.remedy}
    for key in ("line", "column"):
        if hasattr(error, key):
            finding[key] = getattr(error, key)
    return finding


def check(path: Path, classes: Classes | None = None, environment: Mapping[str, str] = os.environ) -> Checked:
    """Read the file once and find every mistake in it; `classes` knows the models, by default the built-in ones."""
    reading = FileSource(path).read()
    if reading.data is None:
        return Checked(str(path), problems=(reading.problem,) if reading.problem else ())
    decoded = decode_text(reading.data, environment)
    if decoded.document is None:
        return Checked(str(path), decoded.problems, decoded.warnings)
    report = Report()
    report.problems += decoded.problems
    report.warnings += decoded.warnings
    usable = check_document(decoded.document, classes or Registry(), environment, report)
    return Checked(str(path), tuple(report.problems), tuple(report.warnings), usable)


def check_document(document: MachineDocument, classes: Classes, environment: Mapping[str, str], report: Report) -> int:
    """Find what decoding cannot see: models, attributes, names of others. Return how many resources are usable."""
    report.warnings += from_document(document)[1]
    document, unresolved = fill(document, environment)
    report.warnings += unresolved
    known = [entry.name for entry in document.resources]
    known += [entry.resource for entry in document.broken if entry.resource is not None]
    directory = Directory(known)
    edges: dict[str, set[str]] = {}
    faulty: set[str] = set()
    for entry in document.resources:
        before = len(report.problems)
        wants = _model_and_attributes(entry, document, classes, report)
        edges[str(entry.name)] = set(_dependencies(entry, wants, document, directory, report))
        if len(report.problems) > before:
            faulty.add(str(entry.name))
    faulty |= set(_cycles(document, edges, report))
    _references(document, directory, report)
    return len(document.resources) - len(faulty)


def _model_and_attributes(
    entry: ResourceEntry, document: MachineDocument, classes: Classes, report: Report
) -> tuple[str, ...]:
    """Names that the driver needs according to its attributes."""
    try:
        cls = classes.find(entry.api, entry.model)
    except MachineError as error:
        if document.modules:
            report.warn(join(entry.path, "model"), f"{error.message}, so a module must offer it", remedy=error.remedy)
        else:
            report.problem(join(entry.path, "model"), error.message, value=str(entry.model), remedy=error.remedy)
        return ()
    try:
        attributes, warnings = decode(cls.Config, entry.attributes, path=join(entry.path, "attributes"))
        report.warnings += warnings
        return tuple(attributes.requires())
    except ConfigErrors as errors:
        report.problems += errors.problems
    except ConfigError as error:
        report.problems.append(error)
    return ()


def _dependencies(
    entry: ResourceEntry, wants: tuple[str, ...], document: MachineDocument, directory: Directory, report: Report
) -> Iterator[str]:
    written = [(join(entry.path, "depends_on", index), name) for index, name in enumerate(entry.depends_on)]
    for path, name in (*written, *((join(entry.path, "attributes"), name) for name in wants)):
        try:
            yield directory.resolve(name, path)
        except ConfigError as error:
            if document.remotes:
                report.warn(path, f"{error.reason}, so a remote must have it", remedy=error.remedy)
            else:
                report.problems.append(error)


def _cycles(document: MachineDocument, edges: Mapping[str, set[str]], report: Report) -> Iterator[str]:
    paths = {str(entry.name): entry.path for entry in document.resources}
    for knot in knots(edges):
        members = [name for name in paths if name in knot]
        names = ", ".join(members)
        report.problem(
            paths[members[0]], f"these need each other, so none can start first: {names}", remedy="remove a dependency"
        )
        yield from members


def _references(document: MachineDocument, directory: Directory, report: Report) -> None:
    """Names that other sections use; a machine runs without them, so these are warnings."""
    jobs = zip(document.places("jobs"), document.jobs, strict=True)
    used = [(join(path, "resource"), job.resource) for path, job in jobs]
    if document.maintenance is not None:
        used.append(("maintenance.sensor_name", document.maintenance.sensor_name))
    for path, name in used:
        try:
            directory.resolve(name, path)
        except ConfigError as error:
            if not document.remotes:
                report.warnings.append(error)
    frames = {(entry.frame.id if entry.frame else "") or entry.name.name for entry in document.components}
    frames |= {WORLD} | {f"{name}_origin" for name in frames}
    for entry in document.components:
        if entry.frame is not None and entry.frame.parent not in frames and not document.remotes:
            report.warn(
                join(entry.path, "frame.parent"),
                f"there is no frame {entry.frame.parent!r}",
                value=entry.frame.parent,
                remedy=did_you_mean(entry.frame.parent, frames),
            )
    for path, module in zip(document.places("modules"), document.modules, strict=True):
        program = Path(module.executable_path).expanduser()
        if module.type != "registry" and "${" not in module.executable_path and not program.is_file():
            report.warn(join(path, "executable_path"), f"{str(program)!r} is not a file on this computer")


def main_check(path: str | Path, json: bool = False) -> int:
    """Check a file and print what was found; the exit code: 0 if nothing is wrong (warnings do not count), else 1.

    Colours only on a terminal; with `json` one JSON object.
    """
    checked = check(Path(path))
    if json:
        click.echo(msgspec.json.format(msgspec.json.encode(checked.as_json(), enc_hook=str), indent=2).decode())
    else:
        for line in human(checked):
            click.echo(line)
    return 1 if checked.problems else 0


def human(checked: Checked) -> Iterator[str]:
    """Lines for a person, with colours; click.echo removes them where there is no terminal."""
    for word, colour, findings in (("error", "red", checked.problems), ("warning", "yellow", checked.warnings)):
        for finding in findings:
            yield f"{click.style(word, fg=colour, bold=True)}: {click.style(finding.path or checked.path, bold=True)}"
            yield f"    {finding.reason}"
            excerpt = getattr(finding, "excerpt", "")
            yield from (f"    | {line}" for line in excerpt.splitlines())
            if finding.remedy:
                yield f"    {click.style('remedy', fg='cyan')}: {finding.remedy}"
    counts = ", ".join(
        f"{len(findings)} {word}{'' if len(findings) == 1 else 's'}"
        for word, findings in (("error", checked.problems), ("warning", checked.warnings))
        if findings
    )
    summary = f"{checked.path}: {counts or 'no mistakes found'}, {checked.resources} usable resources"
    yield click.style(summary, fg="red" if checked.problems else "green")
