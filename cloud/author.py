"""Who asked for something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KEY: Final = "api-key"
PART: Final = "robot-secret"
PROGRAM: Final = "program"  # machine-cloud itself, or its command line


@dataclass(frozen=True, slots=True)
class Author:
    """`type` is the type of the credentials, `name` the id of the key or of the part."""

    type: str
    name: str


THE_PROGRAM: Final = Author(PROGRAM, "machine-cloud")
