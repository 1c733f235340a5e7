"""Versions and platforms: pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from schema.errors import ErrorKind, MachineError

LATEST: Final = "latest"
WITH_PRERELEASE: Final = "latest-with-prerelease"
ANY: Final = "any"

_SEMANTIC: Final = re.compile(
    r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_FREE: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,99}")
_PREFIX: Final = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?")
_PLATFORM: Final = re.compile(r"any|(any|linux|darwin|windows)/(any|amd64|arm64|arm32v7|arm32v6)")
_TAG: Final = re.compile(r"[0-9A-Za-z_.:-]{1,60}")
MAX_TAGS: Final = 20  # tags of a platform; together they are in an index
_MACHINES: Final = {  # machine names of `uname -m`, and those of registries
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm32v7",
    "armv6l": "arm32v6",
    "arm": "arm32v7",
    "armv8l": "arm32v7",
}

Order = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]


def order(version: str) -> Order | None:
    """Return the sort key of a semantic version (semver.org, 11); None for any other text."""
    found = _SEMANTIC.fullmatch(version)
    if found is None:
        return None
    words = tuple(
        (not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in (found[4] or "").split(".") if word
    )
    return int(found[1]), int(found[2]), int(found[3]), found[4] is None, words


def checked_version(version: str, *, semantic: bool) -> str:
    """Return `version`; INVALID if it is not a version, or with `semantic` not a semantic one."""
    if version in (LATEST, WITH_PRERELEASE) or not _FREE.fullmatch(version) or (semantic and order(version) is None):
        raise MachineError(
            f"{version[:60]!r} is not a valid version",
            kind=ErrorKind.INVALID,
            remedy="use a version such as 1.2.3 or 1.2.3-rc.1" if semantic else "use letters, digits and . _ + -",
        )
    return version


def chosen(wanted: str, versions: Sequence[str]) -> str | None:
    """Return the one of `versions`, in order of upload, that `wanted` selects; None if there is none.

    `wanted` is an exact version, `latest` or an empty text, `latest-with-prerelease`, or the beginning of a semantic
    version, `1` or `1.2`. Semantic versions are compared as such, without pre-releases unless requested. If any version
    is not semantic, the latest one is the newest upload.
    """
    if wanted in versions:
        return wanted
    orders = {version: order(version) for version in versions}
    if None in orders.values():
        return versions[-1] if wanted in ("", LATEST, WITH_PRERELEASE) else None
    found = {version: place for version, place in orders.items() if place is not None}
    if wanted != WITH_PRERELEASE:
        found = {version: place for version, place in found.items() if place[3]}
    prefix = _PREFIX.fullmatch(wanted)
    if prefix is not None:
        numbers = tuple(int(one) for one in prefix.groups() if one is not None)
        found = {version: place for version, place in found.items() if place[: len(numbers)] == numbers}
    elif wanted not in ("", LATEST, WITH_PRERELEASE):
        return None
    return max(found, key=lambda version: found[version], default=None)


def newest_first(versions: Iterable[str]) -> list[str]:
    """Return semantic versions in their order, then the others in order of upload; newest first."""
    given = list(versions)
    semantic = [version for version in given if order(version) is not None]
    others = [version for version in given if order(version) is None]
    return [*sorted(semantic, key=lambda version: order(version) or (), reverse=True), *reversed(others)]


def checked_platform(platform: str) -> str:
    """Return a platform in its stored form; empty means any. INVALID for an unknown platform."""
    text = normal_platform(platform) or ANY
    if not _PLATFORM.fullmatch(text):
        raise MachineError(
            f"{platform[:60]!r} is not a valid platform",
            kind=ErrorKind.INVALID,
            remedy="use any, linux/amd64, linux/arm64, linux/arm32v7, linux/arm32v6, darwin/arm64 or windows/amd64",
        )
    return ANY if text == "any/any" else text


def normal_platform(platform: str) -> str:
    """Return a computer's own platform name as registries write it: `linux/x86_64` is linux/amd64."""
    system, _, machine = platform.strip().lower().partition("/")
    return f"{system}/{_MACHINES.get(machine, machine)}" if machine else system


def checked_tags(tags: Iterable[str]) -> str:
    """Return tags in their stored form, sorted and separated by commas; INVALID for invalid tags."""
    given = sorted(set(tags))
    if len(given) > MAX_TAGS:
        raise MachineError(
            f"{len(given)} tags for one platform", kind=ErrorKind.INVALID, remedy=f"use at most {MAX_TAGS}"
        )
    for tag in given:
        if not _TAG.fullmatch(tag):
            raise MachineError(
                f"{tag[:60]!r} is not a valid platform tag",
                kind=ErrorKind.INVALID,
                remedy="use a tag such as distro:debian",
            )
    return ",".join(given)


def fitness(platform: str, tags: str, machine: str, has: Collection[str]) -> int | None:
    """Return how well a file for `platform` with `tags` fits a machine (higher is better); None if it does not fit.

    A machine that has not reported its platform gets only files that fit any platform.
    """
    needed = [tag for tag in tags.split(",") if tag]
    if not set(needed) <= set(has):
        return None
    if platform == ANY:
        return len(needed)
    exact = 0
    for given, own in zip(platform.split("/"), normal_platform(machine).split("/"), strict=False):
        if given not in (ANY, own) or (given != ANY and not own):
            return None
        exact += given != ANY
    return 100 * exact + len(needed) if "/" in normal_platform(machine) else None
