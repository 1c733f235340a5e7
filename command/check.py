"""`machine check`: finds the mistakes in a configuration file without starting anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from engine import Registry
from models import BUILTIN, Models, check_document
from schema import ConfigError, fill_placeholders
from schema.decoding import join
from schema.document import MachineDocument
from uplink import FileSource, decode_text


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of checking a file."""

    path: str
    problems: tuple[ConfigError, ...] = ()
    """Mistakes that make an entry or the whole document unusable."""
    warnings: tuple[ConfigError, ...] = ()
    """Probable mistakes."""
    resources: int = 0
    """Number of components and services without problems."""

    def as_json(self) -> dict[str, Any]:
        """Return the result for programs: `ok`, and lists of `path`, `reason`, `value`, `remedy`."""
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
    """Read a file and find all mistakes in it; `models` defaults to the models installed on this computer."""
    reading = FileSource(path).read()
    if reading.data is None:
        return Checked(str(path), problems=(reading.problem,) if reading.problem else ())
    decoded = decode_text(reading.data, environment)
    substitution_warnings: list[ConfigError] = []
    if decoded.readable is not None:
        filled, unresolved = fill_placeholders(decoded.readable, environment)
        substitution_warnings += [*unresolved, *_programs(filled)]
        usable = filled if decoded.document is not None else None
        decoded = replace(decoded, document=usable, readable=filled)
    result = check_document(decoded, models or Registry(BUILTIN))
    return Checked(str(path), result.problems, (*result.warnings, *substitution_warnings), result.resources)


def _programs(document: MachineDocument) -> Iterator[ConfigError]:
    """Yield warnings for modules whose program is not on this computer."""
    for path, module in zip(document.places("modules"), document.modules, strict=True):
        program = Path(module.executable_path).expanduser()
        if module.type != "registry" and "${" not in module.executable_path and not program.is_file():
            yield ConfigError(join(path, "executable_path"), f"{str(program)!r} is not a file on this computer")


def main_check(path: str | Path, json: bool = False) -> int:
    """Check a file and print the result; returns the exit code: 0 without problems (warnings do not count), else 1.

    The output has colours only on a terminal; with `json` it is a JSON object.
    """
    checked = check(Path(path))
    if json:
        click.echo(msgspec.json.format(msgspec.json.encode(checked.as_json(), enc_hook=str), indent=2).decode())
    else:
        for line in human(checked):
            click.echo(line)
    return 1 if checked.problems else 0


def human(checked: Checked) -> Iterator[str]:
    """Yield the lines for people, with colours, which click.echo removes if the output is not a terminal."""
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
