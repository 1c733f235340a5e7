"""What is wrong with a document: problems and warnings, collected instead of raised one by one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from schema.errors import ConfigError
from schema.secrets import MASK, is_private_path, masked

_SHOWN = 60  # characters of a value in a message; longer ones are cut


def join(path: str, *parts: object) -> str:
    """`components`, 3, `name` as `components.3.name`."""
    return ".".join([path, *map(str, parts)] if path else map(str, parts))


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` was most likely meant to be, if any is near enough to suggest."""
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A remedy that names the nearest of `choices`, or all of them if none is near and they are few."""
    known = sorted(choices)
    best = nearest(word, known)
    if best is not None:
        return f"did you mean {best!r}?"
    return f"known are {', '.join(known)}" if 0 < len(known) <= 12 else ""


def shown(value: object, path: str) -> str:
    """A value as it stands in the document, short, and masked where `path` says that it is secret."""
    safe = masked(value, path.split("."))
    if safe is None:
        return "null"
    if isinstance(safe, bool):
        return "true" if safe else "false"
    text = repr(safe) if not isinstance(safe, str) or safe != MASK else MASK
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class Report:
    """Collects what is found while a document is read. Values of secrets are never kept."""

    def __init__(self) -> None:
        self.problems: list[ConfigError] = []
        self.warnings: list[ConfigError] = []

    def problem(self, path: str, reason: str, *, value: object = None, remedy: str = "") -> None:
        """Something that makes the part at `path` unusable."""
        self.problems.append(_finding(path, reason, value, remedy))

    def warn(self, path: str, reason: str, *, value: object = None, remedy: str = "") -> None:
        """Something that is probably not meant, but has a defined meaning."""
        self.warnings.append(_finding(path, reason, value, remedy))

    def unknown_key(self, path: str, key: str, known: Iterable[str], *, value: object = None) -> None:
        """Warn of a key that nothing reads."""
        self.warn(join(path, key), "nothing reads this key", value=value, remedy=did_you_mean(key, known))


def _finding(path: str, reason: str, value: object, remedy: str) -> ConfigError:
    safe = MASK if value is not None and is_private_path(path.split(".")) else masked(value)
    return ConfigError(path, reason, value=safe, remedy=remedy)
