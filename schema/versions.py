"""Semantic versions with their precedence. Pure."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

_NUMBER = r"(?:0|[1-9][0-9]*)"
_WORD = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"  # a number in a pre-release has no leading zero either
_SEMANTIC = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<prerelease>{_WORD}(?:\.{_WORD})*))?(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_LONGEST = 256  # characters of a version


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class SemanticVersion:
    """Version of semver.org 2.0.0. Order and equality are its precedence, so they ignore build metadata."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> SemanticVersion:
        """Parse a text such as `1.2.3`, `1.2.3-rc.1` or `1.2.3+5f2c`; ValueError for any other text."""
        match = _SEMANTIC.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ValueError(f"{text[:60]!r} is not a semantic version")
        prerelease = tuple(match["prerelease"].split(".")) if match["prerelease"] else ()
        return cls(int(match["major"]), int(match["minor"]), int(match["patch"]), prerelease, match["build"] or "")

    def __lt__(self, other: SemanticVersion) -> bool:
        return self._precedence() < other._precedence()

    def __str__(self) -> str:
        prerelease = f"-{'.'.join(self.prerelease)}" if self.prerelease else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{f'+{self.build}' if self.build else ''}"

    def _precedence(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        """Return the sort key of section 11: a release is above its pre-releases, a word above every number."""
        words = tuple((False, int(word), "") if word.isdigit() else (True, 0, word) for word in self.prerelease)
        return self.major, self.minor, self.patch, not words, words


class VersionForm(Enum):
    """Form of a value of `version_control`."""

    STABLE = "stable"  # the newest release
    DEV = "dev"  # the newest version, including pre-releases
    SEMANTIC = "semantic"  # exactly this version
    HTTPS = "https"
    FILE = "file"
    HTTP = "http"  # anyone on the network path can replace the program: needs the consent of the device


def version_form(text: str) -> VersionForm | None:
    """Return the form of a value of `version_control`; None if it is not valid."""
    if text in ("stable", "dev"):
        return VersionForm(text)
    if re.search(r"[\s\x00-\x1f\x7f]", text):  # urlsplit would remove some of these
        return None
    try:
        url = urlsplit(text)
        if url.scheme == "file":
            is_file = url.path.startswith("/") and not url.path.endswith("/") and not url.query and not url.fragment
            return VersionForm.FILE if is_file and url.netloc in ("", "localhost") else None
        if url.scheme in ("https", "http"):
            return VersionForm(url.scheme) if url.hostname and url.port != 0 else None
        SemanticVersion.parse(text)
    except ValueError:
        return None
    return VersionForm.SEMANTIC
