"""Numbers of machines that a person writes as a number, or as a share of all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

from schema.errors import ErrorKind, MachineError

_TEXT: Final = re.compile(r"([0-9]{1,7})|([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


@dataclass(frozen=True, slots=True)
class CountOrShare:
    """A number of machines, or a share of them from 0 to 1: one of both is set."""

    number: int | None = None
    share: Fraction | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a text such as `2` or `5%` means. MachineError (INVALID) for any other."""
        match = _TEXT.fullmatch(text.strip())
        number, share = match.groups() if match else (None, None)
        if number is not None:
            return cls(number=int(number))
        if share is None or Fraction(share) > 100:
            raise MachineError(
                f"{text[:40]!r} is neither a number such as 2, nor a share such as 5%",
                kind=ErrorKind.INVALID,
                remedy="write a whole number, or a percentage from 0% to 100%",
            )
        return cls(share=Fraction(share) / 100)

    def of(self, all_of_them: int) -> int:
        """Return the number; a share is rounded down."""
        return int(all_of_them * self.share) if self.share is not None else self.number or 0
