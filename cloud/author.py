"""Who asked for something."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rpc.auth import API_KEY, LOCATION_SECRET, PART_SECRET

KEY: Final = API_KEY
PART: Final = PART_SECRET
LOCATION: Final = LOCATION_SECRET  # a part, by a secret of its location
MACHINES: Final = frozenset({PART, LOCATION})
PERSON: Final = "person"  # who accepts an invitation, before there is a key
PROGRAM: Final = "program"  # machine-cloud itself, or its command line


@dataclass(frozen=True, slots=True)
class Author:
    """`type` is the type of the credentials, `name` the id of the key or of the part.

    `credential` is the digest of what was shown and `token` the id of the token, for as long as a call lasts: both must
    still be in force when a role is looked up. Empty for whoever had to show nothing.
    """

    type: str
    name: str
    credential: str = field(default="", compare=False, repr=False)
    token: str = field(default="", compare=False, repr=False)


THE_PROGRAM: Final = Author(PROGRAM, "machine-cloud")
