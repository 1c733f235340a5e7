"""When hooks run, for how long, and what they are given. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

MINUTE: Final = 60.0
MAX_TEXT: Final = 200
"""Characters of the last line of a hook that are shown."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MAX_REASON: Final = 500


class HookMoment(Enum):
    """A moment at which a hook runs. The value is the name of its file."""

    BEFORE_UPDATE = "before-update"
    AFTER_UPDATE = "after-update"
    BEFORE_SWITCH = "before-switch"
    AFTER_SWITCH = "after-switch"
    BEFORE_ROLLBACK = "before-rollback"
    AFTER_ROLLBACK = "after-rollback"


LIMITS: Final[Mapping[HookMoment, float]] = {
    HookMoment.BEFORE_UPDATE: MINUTE,
    HookMoment.AFTER_UPDATE: 5 * MINUTE,
    HookMoment.BEFORE_SWITCH: 5 * MINUTE,
    HookMoment.AFTER_SWITCH: 5 * MINUTE,
    HookMoment.BEFORE_ROLLBACK: MINUTE,
    HookMoment.AFTER_ROLLBACK: 5 * MINUTE,
}
"""Seconds after which a hook is killed. Those of before-update and before-rollback are well below the limits of their
steps."""


class HookedChange(NamedTuple):
    """What a hook is about."""

    program: str
    version_from: str
    version_to: str


class HookAnswer(NamedTuple):
    """Whether a hook ran, and why it refuses what it ran before, or empty."""

    ran: bool
    refusal: str = ""


def environment(moment: HookMoment, change: HookedChange, result: str = "", reason: str = "") -> dict[str, str]:
    """Return all environment variables of a hook. `result` and `reason` are those of an update or roll-back."""
    variables = {
        "PATH": _PATH,
        "LANG": "C.UTF-8",
        "MACHINE_HOOK": moment.value,
        "MACHINE_PROGRAM": change.program,
        "MACHINE_VERSION_FROM": change.version_from,
        "MACHINE_VERSION_TO": change.version_to,
        "MACHINE_TIME_LIMIT": f"{LIMITS[moment]:g}",
        "MACHINE_RESULT": result,
        "MACHINE_REASON": reason[:_MAX_REASON],
    }
    return {name: value.replace("\0", " ") for name, value in variables.items() if value}


def ended(moment: HookMoment, status: int, last_line: str) -> str:
    """Return why a hook refuses: from its exit code, or minus the signal that ended it; empty if it does not."""
    if status == 0:
        return ""
    result = f"ended with exit code {status}" if status > 0 else f"was ended by signal {-status}"
    return f"the hook {moment.value} {result}{': ' if last_line else ''}{last_line}"


def too_slow(moment: HookMoment) -> str:
    """Return why a hook refuses that has been killed."""
    return f"the hook {moment.value} did not end within {LIMITS[moment]:g} s"


def shown(line: bytes) -> str:
    """Return a line of a hook for people."""
    text = line.decode("utf-8", "replace")
    return "".join(character if character.isprintable() else " " for character in text).strip()[:MAX_TEXT]
