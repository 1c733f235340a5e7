"""Read os-release(5): which distribution this is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ASSIGNMENT: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class OsRelease:
    """A distribution. Fields that the text does not have are empty."""

    id: str = ""  # debian
    version: str = ""  # 12
    codename: str = ""  # bookworm
    like: tuple[str, ...] = ()  # related distributions, the most similar first
    name: str = ""  # Debian GNU/Linux 12 (bookworm)

    @property
    def platform(self) -> str:
        """The distribution and its version as the cloud expects them, `debian:12`; empty if the id is missing."""
        return f"{self.id}:{self.version}" if self.id and self.version else self.id


def parse_os_release(text: str) -> OsRelease:
    """Parse the content of /etc/os-release. Skips lines that are not assignments; a later assignment wins."""
    values: dict[str, str] = {}
    for line in text.split("\n"):
        match = _ASSIGNMENT.fullmatch(line.rstrip())
        if match is not None:  # a comment begins with #, which no name contains
            values[match[1]] = unquote(match[2])
    return OsRelease(
        id=values.get("ID", "").lower(),
        version=values.get("VERSION_ID", ""),
        codename=values.get("VERSION_CODENAME", "") or _codename_in(values.get("VERSION", "")),
        like=tuple(values.get("ID_LIKE", "").lower().split()),
        name=values.get("PRETTY_NAME", "") or values.get("NAME", ""),
    )


def unquote(value: str) -> str:
    """Remove quotes and escapes as a shell does, without expansion. An unclosed quote ends with the text."""
    result = []
    quote = ""
    characters = iter(value)
    for character in characters:
        if quote == "'":
            if character == "'":
                quote = ""
            else:
                result.append(character)
        elif character == "\\":
            following = next(characters, "")
            result.append(following if not quote or following in '"\\$`' else character + following)
        elif character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        elif not quote and character.isspace():
            break  # the rest is not part of the value, such as a comment
        else:
            result.append(character)
    return "".join(result)


def _codename_in(version: str) -> str:
    """Return the codename in `12 (bookworm)`: old systems have no VERSION_CODENAME. Empty if there is none."""
    match = re.search(r"\(([a-z]+)\)", version)
    return match[1] if match is not None else ""
