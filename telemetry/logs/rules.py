"""Log levels by logger name: an ordered list of patterns, of which the last match applies. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from schema import ConfigError
from schema.decoding import Effort, Pattern, PatternError, StepLimit, shown
from schema.document import MachineDocument, parse_level
from telemetry.logs import logger_names

_CACHE_SIZE: Final = 4096  # logger names whose level is cached; the cache is cleared when it is full
_STEPS: Final = 10_000  # of all patterns for one new name: at most 10 ms
_STREAMS: Final = (logger_names.STDOUT_SUFFIX, logger_names.STDERR_SUFFIX)


class LoggerMatcher(Protocol):
    """Test of logger names."""

    def fullmatch(self, text: str, effort: Effort | None = None, /) -> bool:
        """Return True if `text` is the name of a logger that is meant. May raise StepLimit."""


@dataclass(frozen=True, slots=True)
class _Below:
    """Match of a logger and of those below it, except of those whose names continue it by one of `but`."""

    name: str
    but: tuple[str, ...] = ()

    def fullmatch(self, text: str, effort: Effort | None = None, /) -> bool:
        rest = text.removeprefix(self.name)
        return text.startswith(self.name) and (not rest or rest[0] == ".") and rest not in self.but


def compile_pattern(pattern: str) -> Pattern:
    r"""Compile a pattern of a document: `.` is a dot, `*` matches any characters, the rest is a regular expression.

    A pattern with a backslash, such as `rdk\.config.*`, is a plain regular expression. Patterns match whole names.
    Raises PatternError, also for an expression that could be slow: see schema.decoding.regex.
    """
    return Pattern(pattern if "\\" in pattern else pattern.replace(".", r"\.").replace("*", ".*"))


def pattern_matches(pattern: Pattern, names_of_logger: Iterable[str]) -> bool:
    """Return True if a pattern matches one of the names, and False if this takes more steps than one event may."""
    effort = Effort(_STEPS)
    try:
        return any(pattern.fullmatch(name, effort) for name in names_of_logger)
    except StepLimit:
        return False


class Rules:
    """Log levels by logger name. Immutable except for a cache."""

    def __init__(
        self, rules: Iterable[tuple[LoggerMatcher, int]] = (), *, default: int = logging.INFO, debug: bool = False
    ) -> None:
        self._rules = tuple(rules)
        self._default = logging.DEBUG if debug else default
        self._debug = debug
        self._cache: dict[str, int] = {}

    @property
    def lowest(self) -> int:
        """The lowest level of any logger: messages below it can be dropped early."""
        return min([self._default, *(level for _, level in self._rules)])

    def level(self, name: str) -> int:
        """Return the level of the logger `name`: messages below it are not shown."""
        level = self._cache.get(name)
        if level is None:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            level = self._cache[name] = self._find(name)
        return level

    def _find(self, name: str) -> int:
        if self._debug:
            return logging.DEBUG
        subjects, effort = logger_names.subjects(name), Effort(_STEPS)
        try:
            for pattern, level in reversed(self._rules):
                if any(pattern.fullmatch(subject, effort) for subject in subjects):
                    return level
        except StepLimit:
            pass  # hundreds of patterns, or a name made for this
        return self._default


def rules_of_document(document: MachineDocument, *, debug: bool = False) -> tuple[Rules, tuple[ConfigError, ...]]:
    """Return the rules of a document, and a warning for each entry with an invalid pattern or level, which is skipped.

    `log` entries come first, then the levels of single modules, services, components and jobs, in this order. They take
    precedence over patterns, and the level of a resource over that of its module. `debug`, as a parameter or in the
    document, takes precedence over all of them.
    """
    rules: list[tuple[LoggerMatcher, int]] = []
    warnings: list[ConfigError] = []
    for index, rule in enumerate(document.log):
        try:
            level = parse_level(rule.level, path=f"log.{index}.level")
            rules.append((compile_pattern(rule.pattern), level))
        except ConfigError as error:
            warnings.append(error)
        except PatternError as error:
            path, remedy = f"log.{index}.pattern", "use the name of a logger, with * for any characters"
            reason = f"{shown(rule.pattern, path)} is not a valid pattern: {error.reason}"
            warnings.append(ConfigError(path, reason, value=rule.pattern, remedy=remedy))
    for module, path in zip(document.modules, document.places("modules"), strict=True):
        if module.log_level:
            try:
                level = parse_level(module.log_level, path=f"{path}.log_level")
                # The output of a module has no levels, so only patterns apply to it.
                rules.append((_Below(logger_names.of_module(module.name), _STREAMS), level))
            except ConfigError as error:
                warnings.append(error)
    rules += [(_Below(name), parse_level(level)) for name, level in _own_levels(document)]
    return Rules(rules, debug=debug or document.debug), tuple(warnings)


def _own_levels(document: MachineDocument) -> Iterator[tuple[str, str]]:
    for entry in document.services + document.components:
        if entry.log_configuration is not None:
            yield logger_names.of_resource(entry.name), entry.log_configuration.level
    for job in document.jobs:
        if job.log_configuration is not None:
            yield logger_names.of_job(job.name), job.log_configuration.level
