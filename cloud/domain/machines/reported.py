"""Meaning of what a part reports about itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

UPDATES: Final = "updates"
"""Key of the summary of its agent's report; cloud.domain.releases.agent_report.summary writes it."""

VERSION_PROBLEMS: Final = "version_problems"
"""Key of the problems of `version_control`, which agents do not read."""

UPDATING: Final = "updating"
ROLLED_BACK: Final = "rolled_back"
PROBLEMS: Final = "problems"
WAITING: Final = "waiting"
MOST: Final = 1_000_000
"""Greatest number of problems that counts."""

COMPUTER: Final = ("processor_pct", "memory_pct", "disk_pct", "temperature_c")
"""Keys of numbers about the computer of a part: the shares of its processors, its memory and the disk with its root
folder that are used, and its highest temperature in degrees Celsius."""

GREATEST_NUMBER: Final = 1000
"""Greatest number about a computer that is shown."""

STATES: Final = (UPDATING, WAITING, ROLLED_BACK, PROBLEMS)
"""States of agents by which lists of machines are filtered."""


def problem_count(reported: Mapping[str, Any]) -> int:
    """Return the number of problems in the last report of a part: configuration mistakes, and resources that do not
    work. The machine counts them in `engine.views.health`. A machine may report any number, also one without meaning.
    """
    numbers = (reported.get(key, 0) for key in ("problems", "unhealthy", "waiting"))
    return sum(int(min(max(count, 0), MOST)) for count in numbers if isinstance(count, int | float) and count == count)


def rejected(reported: Mapping[str, Any]) -> str:
    """Return why a part rejects its newest configuration; empty if it does not."""
    return text_of(reported, "rejected")


def updates(reported: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the summary of the report of a part's agent; empty without one."""
    short = reported.get(UPDATES)
    return short if isinstance(short, Mapping) else {}


def states(reported: Mapping[str, Any]) -> list[str]:
    """Return the states of a part's agent, of STATES."""
    listed = updates(reported).get("states")
    shown = [state for state in STATES if isinstance(listed, list) and state in listed]
    return [*shown, PROBLEMS] if reported.get(VERSION_PROBLEMS) and PROBLEMS not in shown else shown


def version(reported: Mapping[str, Any], program: str) -> str:
    """Return the version of `agent` or `server` that a part runs, as its agent reports it; empty if unknown."""
    report = updates(reported).get(program)
    return text_of(report, "version") if isinstance(report, Mapping) else ""


def server_version(reported: Mapping[str, Any]) -> str:
    """Return the version of machine-server: as its agent reports it, or else as it reports itself."""
    return version(reported, "server") or text_of(reported, "version")


def fragment_revision(reported: Mapping[str, Any], fragment: str) -> str:
    """Return the revision of a fragment that a part runs, as it reports it; empty if unknown.

    The form is that of cloud.documents.resolve.version_of: `7+0a1b2c3d-4.5e6f7a8b-1`.
    """
    for part in text_of(reported, "revision").partition("+")[2].split("."):
        name, _, revision = part.rpartition("-")
        if name and name == fragment[:8]:
            return revision[:12]
    return ""


def number_of(reported: Mapping[str, Any], key: str) -> int | None:
    """Return a number of COMPUTER; None if it is missing, or is not one."""
    value = reported.get(key)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -GREATEST_NUMBER <= value <= GREATEST_NUMBER
    ):
        return None
    return round(value)


def fragment_revisions(reported: Mapping[str, Any], fragment: str) -> set[str]:
    """Return all revisions of a fragment that a part runs: it may use one more than once; see `fragment_revision`."""
    entries = (each.rpartition("-") for each in text_of(reported, "revision").partition("+")[2].split("."))
    return {revision for name, _, revision in entries if name and name == fragment[:8]}


def text_of(reported: Mapping[str, Any], key: str) -> str:
    """Return a text of a report; empty for anything else."""
    value = reported.get(key, "")
    return value if isinstance(value, str) else ""
