"""Which of the two slots is started: a record, and what boot, install and confirm make of it. Pure.

The active slot has been confirmed. A slot on trial is started at most TRIES times without being confirmed; then the
active one is started again. `highest` is the sequence of the newest image that was confirmed: an update must raise it,
so that nobody can bring back an older image with a known defect.
"""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SLOTS = ("a", "b")
TRIES = 3


class Record:
    """What the device remembers of its slots."""

    def __init__(
        self, active: str = "a", trial: str = "", tries: int = 0, highest: int = 0, sequence: int = 0, refused: int = 0
    ) -> None:
        self.active = active
        self.trial = trial
        self.tries = tries
        self.highest = highest
        self.sequence = sequence  # of the image on trial
        self.refused = refused  # sequence of the image that was rolled back last: it is not installed again

    @property
    def inactive(self) -> str:
        """The slot that an update may overwrite."""
        return SLOTS[1 - SLOTS.index(self.active)]

    def values(self) -> "list[str | int]":
        """Return all as values of JSON."""
        return [self.active, self.trial, self.tries, self.highest, self.sequence, self.refused]


def boot(record: Record) -> "tuple[str, Record]":
    """Return the slot to start, and the record that must be stored before."""
    if not record.trial:
        return record.active, record
    if record.tries >= TRIES:
        return record.active, Record(record.active, "", 0, record.highest, 0, record.sequence)
    return record.trial, Record(
        record.active, record.trial, record.tries + 1, record.highest, record.sequence, record.refused
    )


def installed(record: Record, sequence: int) -> Record:
    """Return the record when the inactive slot has a verified image."""
    return Record(record.active, record.inactive, 0, record.highest, sequence, record.refused)


def confirmed(record: Record) -> Record:
    """Return the record when the image on trial is healthy."""
    if not record.trial:
        return record
    return Record(record.trial, "", 0, max(record.highest, record.sequence), 0, record.refused)


def refusal(record: Record, sequence: int) -> str:
    """Return why an image must not be installed, "" if it may."""
    if sequence <= record.highest:
        return f"its sequence {sequence} is not above {record.highest}: older images are not installed"
    if sequence == record.refused:
        return f"the image {sequence} was tried and was not healthy"
    if record.trial:
        return "another image is on trial"
    return ""


def encode(record: Record, count: int, sha256: "Callable[[bytes], bytes]") -> bytes:
    """Return a record as it is stored, with the number of times that one was stored and a checksum."""
    text = json.dumps([count] + record.values()).encode()
    return sha256(text).hex().encode() + b"\n" + text


def decode(data: bytes, sha256: "Callable[[bytes], bytes]") -> "tuple[int, Record] | None":
    """Return count and record, None if the data was not stored completely."""
    digest, _, text = data.partition(b"\n")
    if sha256(text).hex().encode() != digest:
        return None
    count, active, trial, tries, highest, sequence, refused = json.loads(text)
    return count, Record(active, trial, tries, highest, sequence, refused)
