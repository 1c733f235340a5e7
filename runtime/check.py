"""`machine check`: everything that is wrong with a configuration file, found without starting anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from catalogue.check import check as check_document
from catalogue.models import Models
from runtime.registry import Registry
from schema.errors import ConfigError
from schema.machine import MachineDocument
from schema.report import join
from schema.substitution import fill
from uplink.files import FileSource, decode_text


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


def check(path: Path, models: Models | None = None, environment: Mapping[str, str] = os.environ) -> Checked:
    """Read the file once and find every mistake in it; `models` are by default those that this computer has."""
    reading = FileSource(path).read()
    if reading.data is None:
        return Checked(str(path), problems=(reading.problem,) if reading.problem else ())
    decoded = decode_text(reading.data, environment)
    here: list[ConfigError] = []
    if decoded.readable is not None:
        filled, unresolved = fill(decoded.readable, environment)
        here += [*unresolved, *_programs(filled)]
        usable = filled if decoded.document is not None else None
        decoded = replace(decoded, document=usable, readable=filled)
    found = check_document(decoded, models or Registry())
    return Checked(str(path), found.problems, (*found.warnings, *here), found.resources)


def _programs(document: MachineDocument) -> Iterator[ConfigError]:
    """Modules whose program is not on this computer."""
    for path, module in zip(document.places("modules"), document.modules, strict=True):
        program = Path(module.executable_path).expanduser()
        if module.type != "registry" and "${" not in module.executable_path and not program.is_file():
            yield ConfigError(join(path, "executable_path"), f"{str(program)!r} is not a file on this computer")


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
