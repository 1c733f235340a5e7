"""Attributes of `command`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.common.parsing import Format, Parser
from schema import Attributes


class CommandSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the command sensor."""

    argv: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # the program and its arguments
    shell: bool = False  # run argv[0] as a script of sh, with the rest as $1, $2, ...
    format: Format = "json"  # json, csv, key_value, number, regex or text
    pattern: str = ""  # for format regex: an expression in the syntax of RE2 with named groups
    columns: tuple[str, ...] = ()  # for format csv: names of the columns
    separator: str = ","  # for format csv: separator of the columns
    cwd: str | None = None  # working directory
    env: dict[str, str] = msgspec.field(default_factory=dict)  # variables added to the environment
    max_output_bytes: Annotated[int, msgspec.Meta(ge=1, le=16_777_216)] = 65536  # largest output; more is an error

    def __post_init__(self) -> None:
        self.parser()

    def parser(self) -> Parser:
        """Return the parser of the output. ValueError if its settings are invalid."""
        return Parser(format=self.format, pattern=self.pattern, columns=self.columns, separator=self.separator)
