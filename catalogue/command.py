"""Attributes that `runtime.builtin.command` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from catalogue.parsing import Format, Parser
from schema.attributes import Attributes


class CommandSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the command sensor."""

    argv: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # the program and its arguments
    shell: bool = False  # let sh run argv[0] as a script, with the rest as $1, $2, ...
    format: Format = "json"  # json, csv, key_value, number, regex or text
    pattern: str = ""  # for regex: a regular expression with named groups
    columns: tuple[str, ...] = ()  # for csv: names of the columns
    separator: str = ","  # for csv
    cwd: str | None = None  # directory to run in
    env: dict[str, str] = msgspec.field(default_factory=dict)  # variables added to the environment
    max_output_bytes: Annotated[int, msgspec.Meta(ge=1, le=16_777_216)] = 65536  # more is an error

    def __post_init__(self) -> None:
        self.parser()

    def parser(self) -> Parser:
        """Of the output."""
        return Parser(format=self.format, pattern=self.pattern, columns=self.columns, separator=self.separator)
