"""The arm `wrapper_arm`: another arm, with the kinematics of a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar

from engine import (
    Arm,
    ArmProperties,
    Attributes,
    BatchAck,
    Context,
    Extra,
    Kinematics,
    Mesh,
    MoveOptions,
    TrajectoryPoint,
    model,
)
from engine.geometry import forward_kinematics, kinematics
from models.arms.wrapper.attributes import WrapperArmConfig
from models.common.kinematic_arm import chain_in_file, check_positions, joints_for, shapes_at
from schema import ErrorKind, Geometry, MachineError, Pose


@model("rdk:builtin:wrapper_arm")
class WrapperArm(Arm):
    """Adds poses, limits and shapes to a driver that only moves joints. Joints are those of the wrapped arm."""

    Config: ClassVar[type[Attributes]] = WrapperArmConfig

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._chain = chain_in_file(self.attributes.model_path)
        self._arm = self.dependency(Arm, self.attributes.arm_name)

    async def get_end_position(self, *, extra: Extra = None) -> Pose:
        """Compute the end position by forward kinematics."""
        return forward_kinematics(self._chain, await self.get_joint_positions(extra=extra)).pose()

    async def move_to_position(self, to: Pose, *, extra: Extra = None) -> None:
        """Move to a pose. INVALID if no joint positions within the limits reach it."""
        near = await self.get_joint_positions(extra=extra)
        await self._arm.move_to_joint_positions(await joints_for(self._chain, to, near, str(self.name)), extra=extra)

    async def get_joint_positions(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the joint positions of the wrapped arm. PRECONDITION if it has another number of joints."""
        positions = await self._arm.get_joint_positions(extra=extra)
        if len(positions) != len(self._chain.joints):
            raise MachineError(
                f"{self._arm.name} has {len(positions)} joints, but the kinematics of {self.name} have "
                f"{len(self._chain.joints)}",
                kind=ErrorKind.PRECONDITION,
                remedy="use the kinematics file of that arm",
            )
        return positions

    async def move_to_joint_positions(self, positions: Sequence[float], *, extra: Extra = None) -> None:
        """Move the joints. INVALID for positions outside the limits."""
        await self._arm.move_to_joint_positions(check_positions(self._chain, positions, str(self.name)), extra=extra)

    async def move_through_joint_positions(
        self, positions: Sequence[Sequence[float]], options: MoveOptions | None = None, *, extra: Extra = None
    ) -> None:
        """Move through every waypoint. INVALID for positions outside the limits."""
        waypoints = [check_positions(self._chain, waypoint, str(self.name)) for waypoint in positions]
        await self._arm.move_through_joint_positions(waypoints, options, extra=extra)

    def move_through_joint_positions_streamed(
        self, batches: AsyncIterator[Sequence[TrajectoryPoint]], *, extra: Extra = None
    ) -> AsyncGenerator[BatchAck, None]:
        """Pass the points to the wrapped arm."""
        return self._arm.move_through_joint_positions_streamed(batches, extra=extra)

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return the kinematics of the file."""
        return kinematics(self._chain)

    async def get_3d_models(self, *, extra: Extra = None) -> Mapping[str, Mesh]:
        """Return the meshes of the wrapped arm."""
        return await self._arm.get_3d_models(extra=extra)

    async def get_properties(self, *, extra: Extra = None) -> ArmProperties:
        """Return the properties of the wrapped arm; it accepts poses."""
        properties = await self._arm.get_properties(extra=extra)
        return ArmProperties(properties.support_manual_mode, support_cartesian_commands=True)

    async def set_manual_mode(self, manual_mode: bool, enabled_for: int = 0, *, extra: Extra = None) -> None:
        """Set the manual mode of the wrapped arm."""
        await self._arm.set_manual_mode(manual_mode, enabled_for, extra=extra)

    async def get_manual_mode(self, *, extra: Extra = None) -> bool:
        """Return the manual mode of the wrapped arm."""
        return await self._arm.get_manual_mode(extra=extra)

    async def get_geometries(self, *, extra: Extra = None) -> list[Geometry]:
        """Return the shapes of the links."""
        return shapes_at(self._chain, await self.get_joint_positions(extra=extra), self.name.short)

    async def stop(self, *, extra: Extra = None) -> None:
        """Stop the wrapped arm."""
        await self._arm.stop(extra=extra)

    async def is_moving(self) -> bool:
        """Return whether the wrapped arm is moving."""
        return await self._arm.is_moving()

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Pass a command to the wrapped arm."""
        return await self._arm.do_command(command)
