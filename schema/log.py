"""Levels of log messages and the rules that choose them."""

from __future__ import annotations

from typing import Final

from schema.errors import ConfigError
from schema.report import did_you_mean
from schema.section import Section

LEVELS: Final = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
"""Level words and their numbers, which are those of the standard library."""


WORDS: Final = {number: word for word, number in reversed(LEVELS.items())}
"""The word of each level's number."""


def parse_level(text: str, *, path: str = "level") -> int:
    """The number of a level word in any case; ConfigError at `path` for any other word."""
    level = LEVELS.get(text.strip().lower())
    if level is None:
        raise ConfigError(path, f"{text!r} is not a level", value=text, remedy=did_you_mean(text, LEVELS))
    return level


class LogRule(Section, frozen=True, kw_only=True):
    """A level for every logger whose name matches a pattern; of several rules that match the last one wins."""

    pattern: str
    """Name of a logger, such as `rdk.resource_manager.rdk:component:motor/left`; `*` stands for anything."""
    level: str
    """`debug`, `info`, `warn` or `error`, in any case."""


class LogConfiguration(Section, frozen=True, kw_only=True):
    """The level of one resource; it beats every pattern."""

    level: str
    """`debug`, `info`, `warn` or `error`, in any case."""

    def __post_init__(self) -> None:
        parse_level(self.level)
