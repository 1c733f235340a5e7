"""Report of problems and warnings in a document, which are collected instead of raised."""

from __future__ import annotations

from collections.abc import Iterable

from schema.errors import ConfigError
from schema.secrets import MASK, is_private_path, masked, shortened

_SHOWN = 60  # characters of a value in a message; the rest is cut off
_MAX_VALUE = 1000  # characters of a text that a finding keeps
_LONGEST_WORD, _MOST_CHOICES = 64, 200  # that are compared: the time grows with the product


def join(path: str, *parts: object) -> str:
    """Join path parts with dots: `components`, 3, `name` become `components.3.name`."""
    return ".".join([path, *map(str, parts)] if path else map(str, parts))


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to `word`, None if none is similar enough."""
    import difflib  # large, and needed only for what is misspelled

    by_lower = {choice.lower(): choice for choice in choices if len(choice) <= _LONGEST_WORD}
    if len(word) > _LONGEST_WORD or len(by_lower) > _MOST_CHOICES:
        return None
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a remedy that names the most similar choice; without one, all choices if there are at most 12."""
    names = sorted(choices)
    best = nearest(word, names)
    if best is not None:
        return f"did you mean {best!r}?"
    return f"use one of {', '.join(names)}" if 0 < len(names) <= 12 else ""


def shown(value: object, path: str) -> str:
    """Format a value for a message: shortened, and masked if the value at `path` is secret."""
    if isinstance(value, str):
        value = shortened(value, 2 * _SHOWN)
    safe = masked(value, path.split("."))
    if safe is None:
        return "null"
    if isinstance(safe, bool):
        return "true" if safe else "false"
    text = repr(safe) if not isinstance(safe, str) or safe != MASK else MASK
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def detached(error: ConfigError) -> ConfigError:
    """Return an error that was raised, without its traceback, so that it can be stored.

    The traceback refers to the frames of its callers. These hold the document, and often the place where the error is
    stored: such a cycle is freed only by garbage collection.
    """
    error.__context__ = None
    return error.with_traceback(None)


class DecodingReport:
    """Collector of problems and warnings found while decoding a document. Secret values are never stored."""

    def __init__(self) -> None:
        self.problems: list[ConfigError] = []
        self.warnings: list[ConfigError] = []

    def problem(self, path: str, reason: str, *, value: object = None, remedy: str = "") -> None:
        """Report an error that makes the part at `path` unusable."""
        self.problems.append(_finding(path, reason, value, remedy))

    def warn(self, path: str, reason: str, *, value: object = None, remedy: str = "") -> None:
        """Report something that is probably a mistake but has a defined meaning."""
        self.warnings.append(_finding(path, reason, value, remedy))

    def unknown_key(self, path: str, key: str, valid_keys: Iterable[str], *, value: object = None) -> None:
        """Warn about an unknown key."""
        self.warn(join(path, key), "unknown key", value=value, remedy=did_you_mean(key, valid_keys))


def _finding(path: str, reason: str, value: object, remedy: str) -> ConfigError:
    if value is not None and is_private_path(path.split(".")):
        safe: object = MASK
    else:
        safe = shortened(value, _MAX_VALUE) if isinstance(value, str) else masked(value)
    return ConfigError(path, reason, value=safe, remedy=remedy)
