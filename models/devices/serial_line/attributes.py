"""Attributes of `serial_line`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.common.parsing import Format, Parser
from models.devices.common.attributes import SerialAttributes


class SerialLineConfig(SerialAttributes, kw_only=True, frozen=True):
    """Attributes of the serial line sensor."""

    parser: Format = "json"  # json, csv, key_value, number, regex or text
    pattern: str = ""  # for parser regex: an expression in the syntax of RE2 with named groups
    columns: tuple[str, ...] = ()  # for parser csv: names of the columns
    separator: str = ","  # for parser csv: separator of the columns
    max_age_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # largest age of a line; an older one is an error; 0: any
    skip_first: bool = True  # drop the first line after opening, which may be incomplete

    def __post_init__(self) -> None:
        super().__post_init__()
        self.line_parser()

    def line_parser(self) -> Parser:
        """Return the parser of a line. ValueError if its settings are invalid."""
        return Parser(format=self.parser, pattern=self.pattern, columns=self.columns, separator=self.separator)
