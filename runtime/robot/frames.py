"""The frame system's part of RobotService."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from runtime import frames
from runtime.machine import Machine
from runtime.robot import messages as m
from runtime.robot.joints import links_of, poses_of
from runtime.robot.pcd import moved
from schema.frames import WORLD
from schema.geometry import PoseInFrame


class FrameRpcs:
    """Where parts are. An arm's, gantry's or gripper's own frame is where its joints have brought it now."""

    _machine: Machine

    async def frame_system_config(
        self, supplemental_transforms: Sequence[m.Transform] = ()
    ) -> list[m.FrameSystemConfig]:
        """Every part that is connected to `world`, parents first, with links and joints where it tells them."""
        parts = self._frames(supplemental_transforms).ordered()
        links = await links_of(self._machine, parts)
        return [
            m.FrameSystemConfig(
                m.Transform(part.name, PoseInFrame(part.parent, part.pose), part.geometry), links.get(part.name, {})
            )
            for part in parts
        ]

    async def get_pose(
        self,
        component_name: str,
        destination_frame: str = "",
        supplemental_transforms: Sequence[m.Transform] = (),
        *,
        extra: Any = None,
    ) -> PoseInFrame:
        """Where a component is, seen from a frame (default `world`)."""
        frame = self._frames(supplemental_transforms).frame_of(component_name)
        return await self.transform_pose(PoseInFrame(frame), destination_frame, supplemental_transforms)

    async def transform_pose(
        self, source: PoseInFrame, destination: str, supplemental_transforms: Sequence[m.Transform] = ()
    ) -> PoseInFrame:
        """A pose seen from another frame (default `world`)."""
        known = self._frames(supplemental_transforms)
        destination = destination or WORLD
        moving = known.moving(source.reference_frame, destination)
        return known.transform(source, destination, await poses_of(self._machine, moving))

    async def transform_pcd(self, point_cloud_pcd: bytes, source: str, destination: str) -> bytes:
        """A point cloud (PCD, ascii or binary, metres) seen from another frame (default `world`), in its own format."""
        pose = (await self.transform_pose(PoseInFrame(source), destination)).pose
        chunks = []
        for chunk in moved(point_cloud_pcd, pose):
            chunks.append(chunk)
            await trio.lowlevel.checkpoint()
        return b"".join(chunks)

    def _frames(self, supplemental: Sequence[m.Transform]) -> frames.Frames:
        return frames.of_document(self._machine.document).with_parts(
            frames.Part(
                one.reference_frame,
                one.pose_in_observer_frame.reference_frame or WORLD,
                one.pose_in_observer_frame.pose,
                one.physical_object,
            )
            for one in supplemental
        )
