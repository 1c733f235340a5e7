"""Reads the current poses and the kinematics of moving components."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import structlog
import trio

from engine import Arm, Gantry, Gripper, KinematicsFormat, Roster
from engine.geometry import FramePart, pose_of
from schema import Pose
from support import gather

KINEMATICS_LIMIT: Final = 2.0  # seconds for components to return their kinematics; later results are left out


async def poses_of(roster: Roster, parts: Iterable[FramePart]) -> Mapping[str, Pose]:
    """Return the pose of each part in its `_origin` frame by the part's name; the components are asked concurrently.

    Raises MachineError (UNAVAILABLE) for a component that is not ready, or the errors of a component.
    """
    poses: dict[str, Pose] = {}

    async def read(part: FramePart) -> None:
        async with roster.find(part.resource).use() as driver:
            poses[part.name] = await pose_of(driver)

    await gather(*(partial(read, part) for part in parts))
    return poses


async def links_of(
    roster: Roster, log: structlog.stdlib.BoundLogger, parts: Iterable[FramePart]
) -> Mapping[str, Mapping[str, Any]]:
    """Return the links and joints of moving parts as SVA JSON, by name, without parts that do not answer in time."""
    links: dict[str, Mapping[str, Any]] = {}

    async def read(part: FramePart) -> None:
        try:
            async with roster.find(part.resource).use() as driver:
                if isinstance(driver, (Arm, Gantry, Gripper)):
                    kinematics = await driver.get_kinematics()
                    if kinematics.format is KinematicsFormat.SVA:
                        document = json.loads(kinematics.kinematics_data)
                        links[part.name] = document if isinstance(document, dict) else {}
        except Exception as error:  # the list of frames is useful without the links of this part
            log.debug("the links of a part cannot be read", part=part.name, error=str(error))

    with trio.move_on_after(KINEMATICS_LIMIT):
        await gather(*(partial(read, part) for part in parts if part.moves and part.resource))
    return links
