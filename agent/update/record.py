"""The record of a program's releases and of the update in progress, and its encoding as JSON. Pure.

A record is replaced as a whole: `steps.advance` returns a new one, and the caller stores it before it acts.
All times are seconds since 1970.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum
from typing import Final

import msgspec

FORMAT: Final = 1
"""The format of the encoding; increased by a change that an older version would misread."""

HISTORY: Final = 20
"""How many outcomes a record keeps."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}\Z")
_NOT_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class InvalidRecord(ValueError):
    """Data that is not a record, is damaged, or has the format of a newer version. The text names no path."""


class UpdateStep(Enum):
    """A step of an update. The values are stored: never change one."""

    RESOLVE = "resolve"
    DOWNLOAD = "download"
    VERIFY = "verify"
    STAGE = "stage"
    WAIT = "wait"
    SWITCH = "switch"
    TRIAL = "trial"
    ROLL_BACK = "roll_back"
    RECOVER = "recover"


class UpdateResult(Enum):
    """How an update ended. The values are stored: never change one."""

    UPDATED = "updated"
    ROLLED_BACK = "rolled_back"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


class Release(msgspec.Struct, frozen=True):
    """A program file that can be installed. The hash is its identity: the same version may have several."""

    version: str
    sha256: str
    size: int
    origin: str  # the URL that it is downloaded from
    platform: str  # such as linux/aarch64

    def __post_init__(self) -> None:
        if not _SHA256.match(self.sha256):
            raise ValueError(f"the SHA-256 of release {self.version} is not valid: expected 64 hexadecimal digits")
        if self.size < 0:
            raise ValueError(f"the size of release {self.version} is negative")


class ReleaseSlots(msgspec.Struct, frozen=True):
    """The releases whose files are on the disk. Each was verified; `current` is the last that was confirmed."""

    current: Release
    previous: Release | None = None
    factory: Release | None = None


class ReleaseOffer(msgspec.Struct, frozen=True):
    """A release that is to be installed; `explicit` if a person asked for this release, even if it is in quarantine."""

    release: Release
    explicit: bool = False


class UpdateProgress(msgspec.Struct, frozen=True):
    """An update in progress."""

    step: UpdateStep
    target: Release  # in ROLL_BACK and RECOVER the release that is left
    began: float  # the update
    since: float  # the step
    deadline: float  # of the attempt, or of the pause before the next one
    attempts: int = 0  # failed ones until WAIT and in SWITCH and ROLL_BACK; starts in TRIAL and RECOVER
    pausing: bool = False
    explicit: bool = False
    error: str = ""  # the last one
    offline_before: str = ""  # why the machine was offline when the switch began, or empty
    following: ReleaseOffer | None = None  # what is installed after the roll-back
    resumed: int = 0  # how often the agent was started again during the step


class QuarantinedRelease(msgspec.Struct, frozen=True):
    """A release that is installed again only if a person asks for it."""

    sha256: str
    version: str
    reason: str
    time: float


class UpdateOutcome(msgspec.Struct, frozen=True):
    """How an update ended."""

    version_from: str
    version_to: str  # the release that was to be installed
    sha256: str  # its hash
    result: UpdateResult
    reason: str
    began: float
    ended: float


class UpdateRecord(msgspec.Struct, frozen=True):
    """The releases of one program, the update in progress, and what happened before."""

    program: str
    slots: ReleaseSlots
    progress: UpdateProgress | None = None
    quarantine: tuple[QuarantinedRelease, ...] = ()
    history: tuple[UpdateOutcome, ...] = ()  # the newest last
    hold_until: float = 0.0

    def is_quarantined(self, release: Release) -> bool:
        """Return whether this very release is in quarantine."""
        return any(entry.sha256 == release.sha256 for entry in self.quarantine)


class _Header(msgspec.Struct, frozen=True):
    format: int


class _Envelope(msgspec.Struct, frozen=True):
    format: int
    sha256: str  # of `record`
    record: msgspec.Raw


def encode(record: UpdateRecord) -> bytes:
    """Return the record as JSON, with its format and a checksum."""
    raw = msgspec.json.encode(record)
    return msgspec.json.encode(_Envelope(FORMAT, hashlib.sha256(raw).hexdigest(), msgspec.Raw(raw)))


def decode(data: bytes) -> UpdateRecord:
    """Return the record that `encode` encoded; InvalidRecord for anything else."""
    try:
        if (stored := msgspec.json.decode(data, type=_Header).format) != FORMAT:
            raise InvalidRecord(f"the record has format {stored}, but this version reads format {FORMAT}")
        envelope = msgspec.json.decode(data, type=_Envelope)
        if hashlib.sha256(bytes(envelope.record)).hexdigest() != envelope.sha256:
            raise InvalidRecord("the record is damaged: its checksum does not match")
        return msgspec.json.decode(bytes(envelope.record), type=UpdateRecord)
    except _NOT_JSON as error:
        raise InvalidRecord(f"the record is damaged: {error}") from None
