"""Versions and platforms: pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from schema import ErrorKind, MachineError

LATEST: Final = "latest"
WITH_PRERELEASE: Final = "latest-with-prerelease"
ANY: Final = "any"

_SEMANTIC: Final = re.compile(
    r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
LONGEST: Final = 100  # characters of a version
_FREE: Final = re.compile(rf"[0-9A-Za-z][0-9A-Za-z._+-]{{0,{LONGEST - 1}}}")
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
    match = _SEMANTIC.fullmatch(version)
    if match is None:
        return None
    words = tuple(
        (not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in (match[4] or "").split(".") if word
    )
    return int(match[1]), int(match[2]), int(match[3]), match[4] is None, words


def checked_version(version: str, *, semantic: bool) -> str:
    """Return `version`; INVALID if it is not a version, or with `semantic` not a semantic one."""
    if version in (LATEST, WITH_PRERELEASE) or not _FREE.fullmatch(version) or (semantic and order(version) is None):
        raise MachineError(
            f"{version[:60]!r} is not a valid version",
            kind=ErrorKind.INVALID,
            remedy="use a version such as 1.2.3 or 1.2.3-rc.1"
            if semantic
            else f"use at most {LONGEST} letters, digits and . _ + -, with a letter or digit first; not {LATEST}",
        )
    return version


def chosen(selector: str, versions: Sequence[str]) -> str | None:
    """Return the one of `versions`, in order of upload, that `selector` selects; None if there is none.

    `selector` is an exact version, `latest` or an empty text, `latest-with-prerelease`, or the beginning of a semantic
    version, `1` or `1.2`. Semantic versions are compared as such, without pre-releases unless requested. If any version
    is not semantic, the latest one is the newest upload.
    """
    if selector in versions:
        return selector
    orders = {version: order(version) for version in versions}
    if None in orders.values():
        return versions[-1] if selector in ("", LATEST, WITH_PRERELEASE) else None
    candidates = {version: sort_key for version, sort_key in orders.items() if sort_key is not None}
    if selector != WITH_PRERELEASE:
        candidates = {version: sort_key for version, sort_key in candidates.items() if sort_key[3]}
    prefix = _PREFIX.fullmatch(selector)
    if prefix is not None:
        numbers = tuple(int(number) for number in prefix.groups() if number is not None)
        candidates = {
            version: sort_key for version, sort_key in candidates.items() if sort_key[: len(numbers)] == numbers
        }
    elif selector not in ("", LATEST, WITH_PRERELEASE):
        return None
    return max(candidates, key=lambda version: candidates[version], default=None)


def newest_first(versions: Iterable[str]) -> list[str]:
    """Return semantic versions in their order, then the others in order of upload; newest first."""
    ordered_by_upload = list(versions)
    semantic = [version for version in ordered_by_upload if order(version) is not None]
    other_versions = [version for version in ordered_by_upload if order(version) is None]
    return [*sorted(semantic, key=lambda version: order(version) or (), reverse=True), *reversed(other_versions)]


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
    sorted_tags = sorted(set(tags))
    if len(sorted_tags) > MAX_TAGS:
        raise MachineError(
            f"{len(sorted_tags)} tags for one platform", kind=ErrorKind.INVALID, remedy=f"use at most {MAX_TAGS}"
        )
    for tag in sorted_tags:
        if not _TAG.fullmatch(tag):
            raise MachineError(
                f"{tag[:60]!r} is not a valid platform tag",
                kind=ErrorKind.INVALID,
                remedy="use a tag such as distro:debian",
            )
    return ",".join(sorted_tags)


def fitness(platform: str, tags: str, machine: str, machine_tags: Collection[str]) -> int | None:
    """Return how well a file for `platform` with `tags` fits a machine (higher is better); None if it does not fit.

    A machine that has not reported its platform gets only files that fit any platform.
    """
    needed = [tag for tag in tags.split(",") if tag]
    if not set(needed) <= set(machine_tags):
        return None
    if platform == ANY:
        return len(needed)
    exact = 0
    for supported, actual in zip(platform.split("/"), normal_platform(machine).split("/"), strict=False):
        if supported not in (ANY, actual) or (supported != ANY and not actual):
            return None
        exact += supported != ANY
    return 100 * exact + len(needed) if "/" in normal_platform(machine) else None
