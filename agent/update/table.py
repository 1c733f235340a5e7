"""The table of the steps of an update: what each does, its time limit, and where it leads. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from agent.update.record import UpdateStep

PREPARING: Final = frozenset({UpdateStep.RESOLVE, UpdateStep.DOWNLOAD, UpdateStep.VERIFY, UpdateStep.STAGE})

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE


class StepRow(NamedTuple):
    """A step: what is done, and where it leads."""

    does: str
    limit: float  # seconds of one attempt
    then: UpdateStep | None  # the step after a success; None: only the events in `leaves` end it
    again: UpdateStep  # the step that continues after a failure or a power loss
    leaves: str  # the other ways out, for people


TABLE: Final[dict[UpdateStep, StepRow]] = {
    UpdateStep.RESOLVE: StepRow(
        "delete what other updates left; look up the release in the signed metadata; check platform and free space",
        5 * MINUTE, UpdateStep.DOWNLOAD, UpdateStep.RESOLVE, "permanent failure: reject",
    ),
    UpdateStep.DOWNLOAD: StepRow(
        "download the file, resuming what is there; nothing if a file with this hash is on the disk",
        6 * HOUR, UpdateStep.VERIFY, UpdateStep.DOWNLOAD, "permanent failure: reject",
    ),
    UpdateStep.VERIFY: StepRow(
        "check signature, size, hash, platform and identity; delete the download if one of them is wrong",
        10 * MINUTE, UpdateStep.STAGE, UpdateStep.DOWNLOAD, "permanent failure: reject",
    ),
    UpdateStep.STAGE: StepRow(
        "unpack the file into its slot and sync it", 10 * MINUTE, UpdateStep.WAIT, UpdateStep.DOWNLOAD,
        "permanent failure: reject",
    ),
    UpdateStep.WAIT: StepRow(
        "wait for the maintenance window", 7 * 24 * HOUR, None, UpdateStep.DOWNLOAD,
        "window opened: switch; deadline: resolve, because the metadata may have expired",
    ),
    UpdateStep.SWITCH: StepRow(
        "stop the program; link it to the release with an atomic rename", 10 * MINUTE, UpdateStep.TRIAL,
        UpdateStep.SWITCH,
        "permanent failure or the third failure: roll_back",
    ),
    UpdateStep.TRIAL: StepRow(
        "run the release and watch it", 30 * MINUTE, None, UpdateStep.TRIAL,
        "stayed up, served, and fetched its configuration or offline as before the switch: confirm; "
        "fourth start, deadline or permanent failure: roll_back",
    ),
    UpdateStep.ROLL_BACK: StepRow(
        "stop the program; link it to `current` with an atomic rename; needs no network",
        10 * MINUTE, UpdateStep.RECOVER, UpdateStep.ROLL_BACK,
        "permanent failure: roll_back to previous, then to factory",
    ),
    UpdateStep.RECOVER: StepRow(
        "run `current` and watch it", 30 * MINUTE, None, UpdateStep.RECOVER,
        "stayed up and served, or deadline: end; "
        "fourth start or permanent failure: roll_back to previous, then to factory",
    ),
}  # fmt: skip
"""Each step. In all of them, a different offer replaces the update: before SWITCH at once, later after a roll-back."""


def markdown() -> str:
    """Return the table for the documentation."""
    lines = ["| step | what is done | limit | after success | after a failure or power loss | other ways out |"]
    lines.append("|---|---|---|---|---|---|")
    for step, row in TABLE.items():
        after = row.then.value if row.then else ""
        limit = f"{row.limit / MINUTE:g} min" if row.limit < HOUR else f"{row.limit / HOUR:g} h"
        lines.append(f"| {step.value} | {row.does} | {limit} | {after} | {row.again.value} | {row.leaves} |")
    return "\n".join(lines) + "\n"


def edges() -> Iterator[tuple[str, str, str]]:
    """Yield each way from a step to another one: both by name, and why. ENDS are steps after which nothing follows."""
    for step, row in TABLE.items():
        if row.then is not None:
            yield step.value, row.then.value, "success"
        if row.again is not step:
            yield step.value, row.again.value, "failure, power loss"
        for way in row.leaves.split("; "):
            reason, _, rest = way.rpartition(": ")
            target = rest.partition(",")[0].partition(" ")[0]
            yield step.value, target, reason.rpartition(": ")[2]


ENDS: Final = ("reject", "confirm", "end")


def mermaid() -> str:
    """Return the diagram of the steps for the documentation."""
    lines = ["stateDiagram-v2", f"    [*] --> {next(iter(TABLE)).value}: offer"]
    lines += [f"    {start} --> {target}: {reason}" for start, target, reason in edges()]
    lines += [f"    {end} --> [*]" for end in ENDS]
    return "\n".join(lines) + "\n"
