"""The table of provisioning: from which mode, under which conditions, to which mode, and why. Pure.

The first row of the mode whose conditions all hold applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from netmgr.provisioning.conditions import (
    can_host,
    forced,
    good,
    has_entry,
    has_left,
    hotspot_is_due,
    idle,
    leaves,
    retry_is_due,
    test_has_failed,
    tested,
)
from netmgr.provisioning.records import Mode, State, World

Condition = Callable[[State, World, float], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """A transition. `why` completes the sentence "The mode changed because ..."."""

    before: tuple[Mode, ...]
    when: tuple[Condition, ...]
    after: Mode
    why: str


def negated(condition: Condition) -> Condition:
    """Return the opposite of a condition."""

    def opposite(state: State, world: World, now: float) -> bool:
        return not condition(state, world, now)

    opposite.__name__ = f"not {condition.__name__}"
    return opposite


def configured(state: State, world: World, now: float) -> bool:
    """Return whether the device has credentials of a cloud."""
    return world.configured


SEARCHING, ONLINE, HOTSPOT, TESTING = Mode.SEARCHING, Mode.ONLINE, Mode.HOTSPOT, Mode.TESTING
NOT_FORCED: Final = negated(forced)
TABLE: Final = (
    Row(
        (SEARCHING, ONLINE),
        (can_host, forced),
        HOTSPOT,
        "a person at the device has requested the hotspot",
    ),
    Row(
        (SEARCHING, ONLINE),
        (can_host, negated(configured)),
        HOTSPOT,
        "the device has no credentials of a cloud",
    ),
    Row((SEARCHING,), (good,), ONLINE, "the device is online"),
    Row((ONLINE,), (negated(good),), SEARCHING, "the device is offline"),
    Row(
        (SEARCHING,),
        (can_host, hotspot_is_due),
        HOTSPOT,
        "the device has been offline for too long",
    ),
    Row((HOTSPOT,), (negated(can_host),), SEARCHING, "there is no radio for the hotspot any more"),
    Row((HOTSPOT,), (has_entry, leaves), TESTING, "a person has entered a network"),
    Row((HOTSPOT,), (has_left, configured), SEARCHING, "a person has finished"),
    Row((HOTSPOT,), (good, idle, NOT_FORCED), ONLINE, "the device is online"),
    Row((HOTSPOT,), (idle, NOT_FORCED, retry_is_due), SEARCHING, "known networks are tried"),
    Row(
        (TESTING,), (test_has_failed, good), ONLINE, "the entered network could not be joined, but the device is online"
    ),
    Row((TESTING,), (test_has_failed, negated(can_host)), SEARCHING, "the entered network could not be joined"),
    Row((TESTING,), (test_has_failed,), HOTSPOT, "the entered network could not be joined"),
    Row((TESTING,), (tested, configured), SEARCHING, "the entered network was joined"),
    Row(
        (TESTING,),
        (tested,),
        HOTSPOT,
        "the entered network was joined, and credentials of a cloud are missing",
    ),
)


def transition(state: State, world: World, now: float) -> Row | None:
    """Return the row that applies; None if the mode stays."""
    for row in TABLE:
        if state.mode in row.before and all(condition(state, world, now) for condition in row.when):
            return row
    return None
