"""Log levels and the rules that select them."""

from __future__ import annotations

from typing import Final

from schema.decoding.report import did_you_mean
from schema.document.section import Section
from schema.errors import ConfigError

LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
"""Numbers of the level names, as in the standard library."""


WORDS: Final = {number: word for word, number in reversed(LEVELS.items())}
"""Level names by number."""


def parse_level(text: str, *, path: str = "level") -> int:
    """Return the number of a level name, ignoring case; ConfigError at `path` if it is unknown."""
    level = LEVELS.get(text.strip().lower())
    if level is None:
        raise ConfigError(path, f"{text!r} is not a level", value=text, remedy=did_you_mean(text, LEVELS))
    return level


class LogRule(Section, frozen=True, kw_only=True):
    """Level of every logger whose name matches a pattern. If several rules match, the last one applies."""

    pattern: str
    """Logger name, such as `rdk.resource_manager.rdk:component:motor/left`; `*` matches anything."""
    level: str
    """`debug`, `info`, `warn` or `error`, in any case."""


class LogConfiguration(Section, frozen=True, kw_only=True):
    """Level of one resource, which overrides all patterns."""

    level: str
    """`debug`, `info`, `warn` or `error`, in any case."""

    def __post_init__(self) -> None:
        parse_level(self.level)
