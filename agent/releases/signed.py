"""Releases that the verified targets metadata of an organization lists. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from uplink.releases import MAX_FILE, MAX_TARGETS, TARGETS_PATH, Custom, custom_of

_DIGITS: Final = frozenset("0123456789abcdef")


class Signed(NamedTuple):
    """A release that the organization signed."""

    custom: Custom
    sha256: str
    size: int  # bytes of the file

    def path(self, part: str) -> str:
        """Return the path of the file in the cloud, for the machine with the id `part`."""
        folder, _, name = self.custom.path.rpartition("/")
        return TARGETS_PATH.format(part=part, path=f"{folder}/{self.sha256}.{name}")


class Listing(NamedTuple):
    """The signed releases, and the names of targets that this version of the agent cannot use."""

    releases: tuple[Signed, ...]
    skipped: tuple[str, ...] = ()


def listing(targets: Iterable[tuple[str, Mapping[str, str], int, Any]]) -> Listing:
    """Return the releases among targets, each given as name, hashes, length in bytes, and `custom` field.

    A target that is not understood, such as one for a platform or program that a newer version introduced, is skipped:
    it must not keep this machine from its own releases. So are those above MAX_TARGETS.
    """
    releases: list[Signed] = []
    skipped: list[str] = []
    for path, hashes, length, custom in targets:
        try:
            sha256 = hashes["sha256"]
            if len(sha256) != 64 or not set(sha256) <= _DIGITS or not 0 < length <= MAX_FILE:
                raise ValueError
            if len(releases) == MAX_TARGETS:
                raise ValueError
            releases.append(Signed(custom_of(path, custom), sha256, length))
        except (KeyError, ValueError):
            skipped.append(path)
    return Listing(tuple(releases), tuple(skipped))
