"""Authors: who made a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rpc.access import API_KEY, LOCATION_SECRET, PART_SECRET

KEY: Final = API_KEY
PART: Final = PART_SECRET
LOCATION: Final = LOCATION_SECRET  # a part with a secret of its location
MACHINES: Final = frozenset({PART, LOCATION})
PERSON: Final = "person"  # a person who accepts an invitation, before the key exists
PROGRAM: Final = "program"  # machine-cloud itself or its command line


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a call. `type` is the type of the credentials, `name` the id of the key or of the part.

    `credential` is the digest of the credential that was used and `token` the id of the token, for the duration of a
    call: both must still be valid when a role is looked up. Both are empty for authors without credentials.
    """

    type: str
    name: str
    credential: str = field(default="", compare=False, repr=False)
    token: str = field(default="", compare=False, repr=False)


THE_PROGRAM: Final = Author(PROGRAM, "machine-cloud")
