"""Attributes of `shell`. Pure."""

from __future__ import annotations

import msgspec

from schema import Attributes


class ShellAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes of the shell service."""

    program: str = ""  # the shell; empty: the environment variable SHELL, or /bin/sh
    directory: str = ""  # working directory of shells and base of relative file paths; empty: the user's home
    env: dict[str, str] = msgspec.field(default_factory=dict)  # variables added to the environment of shells

    def __post_init__(self) -> None:
        for key, path in (("program", self.program), ("directory", self.directory)):
            if path and not path.startswith(("/", "~")):
                raise ValueError(f"{key} is {path!r}: write a path from the root, such as /home/robot, or ~/work")
