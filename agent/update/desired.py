"""The version of a program that the cloud names. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

CUSTOM: Final = "customURL"
"""The version that stands for a URL: a constant of the protocol."""


class DesiredVersion(msgspec.Struct, frozen=True):
    """What the cloud wants a program to be, from its answer until a release is offered for it."""

    version: str  # CUSTOM for a file whose hash is not known
    url: str  # may contain a signature: never show it
    sha256: str = ""  # 64 hexadecimal digits, or empty if the cloud does not know it

    def __repr__(self) -> str:
        return f"DesiredVersion({self.version!r})"
