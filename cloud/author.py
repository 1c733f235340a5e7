"""Who asked for something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rpc.auth import API_KEY, PART_SECRET

KEY: Final = API_KEY
PART: Final = PART_SECRET
PROGRAM: Final = "program"  # machine-cloud itself, or its command line


@dataclass(frozen=True, slots=True)
class Author:
    """`type` is the type of the credentials, `name` the id of the key or of the part."""

    type: str
    name: str


THE_PROGRAM: Final = Author(PROGRAM, "machine-cloud")
