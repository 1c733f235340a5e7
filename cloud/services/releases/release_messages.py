"""Messages of machine.cloud.v1.ReleaseService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class ReleaseKey(Struct, frozen=True):
    """A key of the cloud that the next root.json lists; `public` is its public part in hexadecimal digits."""

    role: str
    keyid: str
    public: str


class ReleaseMetadata(Struct, frozen=True):
    """A metadata file in force."""

    role: str
    version: int
    expires: datetime


class ReleaseTarget(Struct, frozen=True):
    """A release for one platform. `sha256` is in hexadecimal digits, `size` is in bytes."""

    program: str
    version: str
    platform: str
    channels: list[str]
    sha256: str
    size: int


class RolloutInfo(Struct, frozen=True):
    """A rollout. `stop_after` is negative if any number of machines may roll back."""

    program: str
    version: str
    percent: float
    tags: list[str]
    location_ids: list[str]
    stop_after: int
    state: str  # active, paused, stopped or finished
    reason: str
    created: datetime
    changed: datetime
    rolled_back: int  # machines that rolled back since it was started or resumed
    staged: bool = False  # a rollout in stages decides; see RolloutService


class ReleaseRepository(Struct, frozen=True):
    """The releases of an organization. Without a repository the lists are empty."""

    metadata: list[ReleaseMetadata]
    targets: list[ReleaseTarget]
    rollouts: list[RolloutInfo]
    keys_held_by: str = "people"  # or cloud, which then signs root.json and targets.json itself


class ReleaseImportNote(Struct, frozen=True):
    """Why there is no release for a platform, or for any if it is empty, and what can be done."""

    platform: str
    reason: str
    remedy: str


class ReleaseImport(Struct, frozen=True):
    """An import of the cloud's own programs. `number` grows with each change; it is 0 if there was no import.

    `state` is empty then, otherwise waiting, working, done or failed. `done` and `total` are the bytes of a step.
    """

    state: str = ""
    step: str = ""
    done: int = 0
    total: int = 0
    notes: list[ReleaseImportNote] = []
    number: int = 0


class RolloutMachine(Struct, frozen=True):
    """How a machine fares with a version; `state` is an outcome, a step of its update, or `waiting`."""

    part_id: str
    part: str
    machine: str
    location: str
    state: str
    version: str
    reason: str = ""
    since: datetime | None = None


class RolloutStatus(Struct, frozen=True):
    """A rollout with the machines that have reported about its version."""

    rollout: RolloutInfo
    machines: list[RolloutMachine]
