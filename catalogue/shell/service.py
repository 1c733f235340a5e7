"""Attributes that `runtime.builtin.shell.service` reads."""

from __future__ import annotations

import msgspec

from schema.attributes import Attributes


class ShellAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes of the shell service."""

    program: str = ""  # the shell; empty: that of the environment variable SHELL, else /bin/sh
    directory: str = ""  # where shells start and relative paths of files begin; empty: the user's home directory
    env: dict[str, str] = msgspec.field(default_factory=dict)  # variables added to the environment of shells

    def __post_init__(self) -> None:
        for key, path in (("program", self.program), ("directory", self.directory)):
            if path and not path.startswith(("/", "~")):
                raise ValueError(f"{key} is {path!r}: write a path from the root, such as /home/robot, or ~/work")
