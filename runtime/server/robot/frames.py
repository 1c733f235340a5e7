"""The frame system methods of RobotService."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from engine.geometry import FramePart, Frames, SuppliedFrame, frames_of_document
from runtime.server.machine import Machine
from runtime.server.robot import messages as m
from runtime.server.robot.joints import links_of, poses_of
from runtime.server.robot.pcd import transformed
from schema import WORLD, PoseInFrame


class FrameRpcs:
    """RPCs of the frame system. The frames of arms, gantries and grippers follow their current joint positions."""

    _machine: Machine

    async def frame_system_config(
        self, supplemental_transforms: Sequence[SuppliedFrame] = ()
    ) -> list[m.FrameSystemConfig]:
        """Return the parts that are connected to `world`, parents first, with their links and joints if available."""
        parts = self._frames(supplemental_transforms).ordered()
        links = await links_of(self._machine.roster, self._machine.log, parts)
        return [
            m.FrameSystemConfig(
                SuppliedFrame(part.name, PoseInFrame(part.parent, part.pose), part.geometry), links.get(part.name, {})
            )
            for part in parts
        ]

    async def get_pose(
        self,
        component_name: str,
        destination_frame: str = "",
        supplemental_transforms: Sequence[SuppliedFrame] = (),
        *,
        extra: Any = None,
    ) -> PoseInFrame:
        """Return the pose of a component in a frame (default `world`)."""
        frame = self._frames(supplemental_transforms).frame_of(component_name)
        return await self.transform_pose(PoseInFrame(frame), destination_frame, supplemental_transforms)

    async def transform_pose(
        self, source: PoseInFrame, destination: str, supplemental_transforms: Sequence[SuppliedFrame] = ()
    ) -> PoseInFrame:
        """Transform a pose to another frame (default `world`)."""
        frame_system = self._frames(supplemental_transforms)
        destination = destination or WORLD
        moving = frame_system.moving(source.reference_frame, destination)
        return frame_system.transform(source, destination, await poses_of(self._machine.roster, moving))

    async def transform_pcd(self, point_cloud_pcd: bytes, source: str, destination: str) -> bytes:
        """Transform a point cloud (PCD, ascii or binary, metres) to another frame (default `world`)."""
        pose = (await self.transform_pose(PoseInFrame(source), destination)).pose
        chunks = []
        for chunk in transformed(point_cloud_pcd, pose):
            chunks.append(chunk)
            await trio.lowlevel.checkpoint()
        return b"".join(chunks)

    def _frames(self, supplemental: Sequence[SuppliedFrame]) -> Frames:
        return frames_of_document(self._machine.configured.document).with_parts(
            FramePart(
                transform.reference_frame,
                transform.pose_in_observer_frame.reference_frame or WORLD,
                transform.pose_in_observer_frame.pose,
                transform.physical_object,
            )
            for transform in supplemental
        )
