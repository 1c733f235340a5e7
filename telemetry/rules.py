"""Which level a logger has: patterns in order, the last match wins."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Final

from schema.errors import ConfigError
from schema.log import parse_level
from schema.machine import MachineDocument
from telemetry import names

_REMEMBERED: Final = 4096  # logger names whose level is kept; beyond it all are forgotten and looked up again
_STREAMS: Final = rf"(?!{re.escape(names.STDOUT_SUFFIX)}$|{re.escape(names.STDERR_SUFFIX)}$)"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""A pattern as the documents write it: `.` is a dot, `*` any run of characters, the rest is a regular expression.

    One with a backslash is a regular expression throughout, such as `rdk\.config.*`. It matches whole names only.
    Raises re.error.
    """
    plain = pattern if "\\" in pattern else pattern.replace(".", r"\.").replace("*", ".*")
    return re.compile(plain, re.DOTALL)


class Rules:
    """Levels by logger name. Immutable but for a memory of past answers."""

    def __init__(
        self, rules: Iterable[tuple[re.Pattern[str], int]] = (), *, default: int = logging.INFO, debug: bool = False
    ) -> None:
        self._rules = tuple(rules)
        self._default = logging.DEBUG if debug else default
        self._debug = debug
        self._known: dict[str, int] = {}

    @property
    def lowest(self) -> int:
        """The lowest level that any logger can have: nothing below it needs to be looked at."""
        return min([self._default, *(level for _, level in self._rules)])

    def level(self, name: str) -> int:
        """The level of the logger `name`: messages below it are not shown."""
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[name] = self._find(name)
        return known

    def _find(self, name: str) -> int:
        if self._debug:
            return logging.DEBUG
        subjects = names.subjects(name)
        for pattern, level in reversed(self._rules):
            if any(pattern.fullmatch(subject) for subject in subjects):
                return level
        return self._default


def from_document(document: MachineDocument, *, debug: bool = False) -> tuple[Rules, tuple[ConfigError, ...]]:
    """The rules of a document, and a warning for each entry that is skipped because its pattern or level is wrong.

    `log` entries come first, then the entries' own levels, which beat every pattern: of modules, services, components
    and jobs in this order, so that a resource's own level beats its module's. `debug` here or in the document beats
    all.
    """
    rules: list[tuple[re.Pattern[str], int]] = []
    warnings: list[ConfigError] = []
    for index, rule in enumerate(document.log):
        try:
            level = parse_level(rule.level, path=f"log.{index}.level")
            rules.append((compile_pattern(rule.pattern), level))
        except ConfigError as error:
            warnings.append(error)
        except re.error as error:
            path, remedy = f"log.{index}.pattern", "write a logger's name, with * for anything"
            reason = f"{rule.pattern!r} is not a pattern ({error})"
            warnings.append(ConfigError(path, reason, value=rule.pattern, remedy=remedy))
    for module, path in zip(document.modules, document.places("modules"), strict=True):
        if module.log_level:
            try:
                level = parse_level(module.log_level, path=f"{path}.log_level")
                # What it prints has no level of its own: only patterns choose among that.
                rules.append((_and_below(names.of_module(module.name), but=_STREAMS), level))
            except ConfigError as error:
                warnings.append(error)
    rules += [(_and_below(name), parse_level(word)) for name, word in _own(document)]
    return Rules(rules, debug=debug or document.debug), tuple(warnings)


def _own(document: MachineDocument) -> Iterator[tuple[str, str]]:
    for entry in document.services + document.components:
        if entry.log_configuration is not None:
            yield names.of_resource(entry.name), entry.log_configuration.level
    for job in document.jobs:
        if job.log_configuration is not None:
            yield names.of_job(job.name), job.log_configuration.level


def _and_below(name: str, *, but: str = "") -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}{but}(?:\..*)?", re.DOTALL)
