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
from netmgr.provisioning.states import Mode, ProvisioningState, ProvisioningWorld

Condition = Callable[[ProvisioningState, ProvisioningWorld, float], bool]


@dataclass(frozen=True, slots=True)
class ProvisioningRow:
    """A transition. `why` completes the sentence "The mode changed because ..."."""

    before: tuple[Mode, ...]
    when: tuple[Condition, ...]
    after: Mode
    why: str


def negated(condition: Condition) -> Condition:
    """Return the opposite of a condition."""

    def opposite(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
        return not condition(state, world, now)

    opposite.__name__ = f"not {condition.__name__}"
    return opposite


def configured(state: ProvisioningState, world: ProvisioningWorld, now: float) -> bool:
    """Return whether the device has credentials of a cloud."""
    return world.configured


SEARCHING, ONLINE, HOTSPOT, TESTING = Mode.SEARCHING, Mode.ONLINE, Mode.HOTSPOT, Mode.TESTING
NOT_FORCED: Final = negated(forced)
TABLE: Final = (
    ProvisioningRow(
        (SEARCHING, ONLINE),
        (can_host, forced),
        HOTSPOT,
        "a person at the device has requested the hotspot",
    ),
    ProvisioningRow(
        (SEARCHING, ONLINE),
        (can_host, negated(configured)),
        HOTSPOT,
        "the device has no credentials of a cloud",
    ),
    ProvisioningRow((SEARCHING,), (good,), ONLINE, "the device is online"),
    ProvisioningRow((ONLINE,), (negated(good),), SEARCHING, "the device is offline"),
    ProvisioningRow(
        (SEARCHING,),
        (can_host, hotspot_is_due),
        HOTSPOT,
        "the device has been offline for too long",
    ),
    ProvisioningRow((HOTSPOT,), (negated(can_host),), SEARCHING, "there is no radio for the hotspot any more"),
    ProvisioningRow((HOTSPOT,), (has_entry, leaves), TESTING, "a person has entered a network"),
    ProvisioningRow((HOTSPOT,), (has_left, configured), SEARCHING, "a person has finished"),
    ProvisioningRow((HOTSPOT,), (good, idle, NOT_FORCED), ONLINE, "the device is online"),
    ProvisioningRow((HOTSPOT,), (idle, NOT_FORCED, retry_is_due), SEARCHING, "known networks are tried"),
    ProvisioningRow(
        (TESTING,), (test_has_failed, good), ONLINE, "the entered network could not be joined, but the device is online"
    ),
    ProvisioningRow(
        (TESTING,), (test_has_failed, negated(can_host)), SEARCHING, "the entered network could not be joined"
    ),
    ProvisioningRow((TESTING,), (test_has_failed,), HOTSPOT, "the entered network could not be joined"),
    ProvisioningRow((TESTING,), (tested, configured), SEARCHING, "the entered network was joined"),
    ProvisioningRow(
        (TESTING,),
        (tested,),
        HOTSPOT,
        "the entered network was joined, and credentials of a cloud are missing",
    ),
)


def transition(state: ProvisioningState, world: ProvisioningWorld, now: float) -> ProvisioningRow | None:
    """Return the row that applies; None if the mode stays."""
    for row in TABLE:
        if state.mode in row.before and all(condition(state, world, now) for condition in row.when):
            return row
    return None
