"""Messages of machine.cloud.v1.TriggerService, of which pages use those of triggers and their tests too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from cloud.domain.triggering.deliveries import Attempt
from triggers import Explanation


class Target(Struct, frozen=True):
    """A recipient. `until` is the end of the pause after the last message, `stopped` the reason why nothing is sent."""

    type: str
    value: str
    seconds: float  # between notifications
    signed: bool
    until: datetime | None = None
    stopped: str = ""


class Trigger(Struct, frozen=True):
    """A trigger in force. `condition` is its event as configured."""

    name: str
    event: str
    condition: Mapping[str, Any]
    notes: str
    targets: tuple[Target, ...]


class Triggers(Struct, frozen=True):
    """The triggers of a part, with the problems of those that are not in force."""

    triggers: tuple[Trigger, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class TriggerTest(Struct, frozen=True):
    """The effect of a reading. `targets` are the recipients with their present state."""

    explanation: Explanation
    targets: tuple[Target, ...]
    reading: Mapping[str, Any] | None  # the reading that was evaluated


class Delivery(Struct, frozen=True):
    """A delivery in the log. `next` is the time of the next attempt; `about` names the component and the method."""

    id: str
    number: int
    trigger: str
    event: str
    type: str
    target: str
    state: str  # waiting, delivered or failed
    attempts: int
    created: datetime
    next: datetime | None
    test: bool
    about: Mapping[str, str]


class DeliveryRecord(Struct, frozen=True):
    """A delivery with what is sent, and all attempts so far."""

    delivery: Delivery
    headers: Mapping[str, str]
    body: bytes
    attempts: Sequence[Attempt]
