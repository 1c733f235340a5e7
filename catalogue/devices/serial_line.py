"""Attributes that `runtime.builtin.devices.serial_line` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from catalogue.devices.attributes import SerialAttributes
from catalogue.parsing import Format, Parser


class SerialLineConfig(SerialAttributes, kw_only=True, frozen=True):
    """Attributes of the serial line sensor."""

    parser: Format = "json"  # json, csv, key_value, number, regex or text
    pattern: str = ""  # for regex: a regular expression with named groups
    columns: tuple[str, ...] = ()  # for csv: names of the columns
    separator: str = ","  # for csv
    max_age_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0  # an older line is an error; 0 accepts any
    skip_first: bool = True  # drop the first line after opening: its beginning may have been missed

    def __post_init__(self) -> None:
        super().__post_init__()
        self.line_parser()

    def line_parser(self) -> Parser:
        """Of a line."""
        return Parser(format=self.parser, pattern=self.pattern, columns=self.columns, separator=self.separator)
