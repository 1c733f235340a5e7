"""The contract of a planner: a problem, and a trajectory or a refusal. Pure.

Joint positions are in radians or mm, lengths in mm, angles in radians. A planner is any function from a Problem to a
Trajectory that raises MachineError with an explanation, so that tests use one of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from engine.kinematics import Flat, Mechanism
from schema import ErrorKind, MachineError

MAX_SOLIDS: Final = 1000  # of a problem
MAX_SECONDS: Final = 60.0  # of planning
MAX_MARGIN: Final = 500.0  # mm
INSTALL: Final = "pip install 'machine-runtime[motion]'"
EXTRA: Final = ("numpy", "pinocchio", "coal", "ompl")
"""The packages of the extra `motion`."""
PLANNED: Final = b"+"
"""First byte of a planner process's answer that is a Trajectory."""
REFUSED: Final = b"-"
"""First byte of one that is a Refusal."""


class Solid(msgspec.Struct, frozen=True):
    """A shape that may not touch others: a point, line or box of half the size `half` (mm), grown by `radius`.

    It is at `at` in the frame of `body`: 0 is the world, and body i moves with joint i. `owner` is the component or
    frame to which it belongs, and `label` its name in messages.
    """

    label: str
    owner: str
    body: int
    at: Flat
    half: tuple[float, float, float]
    radius: float


class Constraints(msgspec.Struct, frozen=True):
    """What must hold all the way: distance from the straight line (mm), and rotation from the direct way (radians)."""

    line: float | None = None
    rotation: float | None = None
    ignore_roll: bool = False  # compare only the direction of the z axis

    @property
    def straight(self) -> bool:
        """Whether the output has to move along a line."""
        return self.line is not None


class PlanningProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A motion to plan. The goal is a pose of the output (`goal`) or joint positions (`goal_values`)."""

    mechanism: Mechanism
    start: list[float]
    goal: Flat | None = None
    goal_values: list[float] | None = None
    solids: list[Solid] = []
    allowed: list[tuple[str, str]] = []  # pairs of owners or labels that may touch
    constraints: Constraints = Constraints()
    margin: float = 5.0  # mm to keep between shapes
    speeds: list[float] = []  # of joints, per second; empty for no limit
    accelerations: list[float] = []  # per second squared
    seed: int = 1
    seconds: float = 10.0  # of searching
    search: bool = True  # whether a way around may be searched


class Trajectory(msgspec.Struct, frozen=True):
    """A free path: joint positions, and the earliest time (s) of each within the limits of the joints.

    Between two points, joints move in proportion. `method` is `straight`, `line` or `search`.
    """

    points: list[list[float]]
    times: list[float]
    method: str
    clearance: float  # smallest distance of two shapes on the way (mm), or a lower bound of it; at most 200


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no trajectory; `kind` is a value of ErrorKind."""

    kind: str
    message: str
    remedy: str = ""

    def error(self) -> MachineError:
        """Return the error to raise."""
        return MachineError(self.message, kind=ErrorKind(self.kind), remedy=self.remedy)


Planner: TypeAlias = Callable[[PlanningProblem], Awaitable[Trajectory]]
