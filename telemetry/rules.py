"""Which level a logger has: patterns in order, the last match wins."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Final

from schema.errors import ConfigError
from schema.log import parse_level
from schema.machine import MachineDocument
from telemetry import names

_REMEMBERED: Final = 4096  # logger names whose level is kept; beyond it all are forgotten and looked up again


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern as the documents write it: `.` is a dot, `*` any run of characters, the rest as in regular expressions.

    It matches whole names only. Raises re.error.
    """
    return re.compile(pattern.replace(".", r"\.").replace("*", ".*"), re.DOTALL)


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
        return next((level for pattern, level in reversed(self._rules) if pattern.fullmatch(name)), self._default)


def from_document(document: MachineDocument, *, debug: bool = False) -> tuple[Rules, tuple[ConfigError, ...]]:
    """The rules of a document, and a warning for each entry that is skipped because its pattern or level is wrong.

    `log` entries come first, then the resources' own levels, services before components, so that these beat every
    pattern. `debug` here or in the document beats all.
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
    own = [
        (names.of_resource(entry.name), entry.log_configuration) for entry in document.services + document.components
    ]
    own += [(names.of_job(job.name), job.log_configuration) for job in document.jobs]
    rules += [(re.compile(re.escape(name)), parse_level(own.level)) for name, own in own if own is not None]
    return Rules(rules, debug=debug or document.debug), tuple(warnings)
