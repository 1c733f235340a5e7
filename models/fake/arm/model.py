"""A simulated arm with six axes, or with the kinematics of a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import ClassVar, Final

from engine import (
    Arm,
    ArmProperties,
    Attributes,
    BatchAck,
    Extra,
    Kinematics,
    Mesh,
    MoveOptions,
    Started,
    TrajectoryPoint,
    Unsupported,
    model,
)
from engine.geometry import SIX_AXIS, Chain, forward_kinematics, kinematics
from engine.kinematics import arms
from models.common.kinematic_arm import chain_in_file, check_positions, joints_for, shapes_at
from models.fake.arm.attributes import FakeArmConfig
from models.fake.common.axes import MovingAxes
from models.fake.common.simulated import finite_values
from schema import ErrorKind, Geometry, MachineError, Pose, RectangularPrism, Vector3

SPEED: Final = 90.0  # highest speed of every joint, degrees (or mm) per second
HOME: Final = (0.0, 30.0, 60.0, 0.0, 60.0, 0.0)  # degrees: a bent pose, from which it can move in every direction


@model("rdk:builtin:fake")
class FakeArm(MovingAxes, Arm):
    """All joints arrive at the same time. Of the joint positions for a pose, those nearest to the current are used."""

    chain: Chain
    Config: ClassVar[type[Attributes]] = FakeArmConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the arm to the simulated world until cancelled. ConfigError for an unreadable kinematics file."""
        self.chain = self._load()
        await self.simulate("arm", self.home(), task_status)

    def speed(self) -> float:
        """Return the highest speed of every joint, in degrees (or mm) per second."""
        return SPEED

    def home(self) -> list[float]:
        """Return the positions at which the arm begins."""
        if self.chain is SIX_AXIS:
            return list(HOME)
        return [min(joint.high, max(joint.low, 0.0)) for joint in self.chain.joints]

    def _load(self) -> Chain:
        config: FakeArmConfig = self.attributes
        if config.model_path:
            return chain_in_file(config.model_path)
        if config.arm_model in arms.NAMES:
            return arms.named(config.arm_model)
        if config.arm_model:
            self.log.warning(
                "the simulated arm does not have the kinematics of the configured model",
                asked=config.arm_model,
                used=SIX_AXIS.name,
                available=list(arms.NAMES),
            )
        return SIX_AXIS

    def _checked(self, positions: Sequence[float]) -> list[float]:
        return check_positions(self.chain, positions, str(self.name))

    async def get_end_position(self, *, extra: Extra = None) -> Pose:
        """Compute the end position by forward kinematics."""
        return forward_kinematics(self.chain, await self.positions()).pose()

    async def move_to_position(self, to: Pose, *, extra: Extra = None) -> None:
        """Move to a pose. INVALID if no joint positions within the limits reach it."""
        await self.move_to_joint_positions(await joints_for(self.chain, to, await self.positions(), str(self.name)))

    async def get_joint_positions(self, *, extra: Extra = None) -> Sequence[float]:
        """Return the joint positions in degrees or mm, base first."""
        return await self.positions()

    async def move_to_joint_positions(self, positions: Sequence[float], *, extra: Extra = None) -> None:
        """Move the joints, which arrive at the same time. INVALID for positions outside the limits."""
        values = self._checked(positions)
        await self.move_axes(values, [self.speed()] * len(values), together=True)

    async def move_through_joint_positions(
        self, positions: Sequence[Sequence[float]], options: MoveOptions | None = None, *, extra: Extra = None
    ) -> None:
        """Move through every waypoint, with joint speeds limited by `options`. Unsupported for other limits."""
        waypoints = [self._checked(waypoint) for waypoint in positions]
        options = options or MoveOptions()
        if options.max_tcp_speed is not None:
            raise Unsupported(f"{self.name} cannot limit the speed of its tool", remedy="limit the joints' speeds")
        if options.max_acc_degs_per_sec2 is not None or options.max_acc_degs_per_sec2_joints:
            raise Unsupported(f"{self.name} does not support limits of acceleration", remedy="limit the joints' speeds")
        fastest = self.speed()
        common = min(fastest, options.max_vel_degs_per_sec or fastest)
        count = len(self.chain.joints)
        speeds = finite_values("joint speeds", options.max_vel_degs_per_sec_joints or [common] * count, count)
        if min(speeds) <= 0:
            raise MachineError(f"{self.name}: a joint speed of {min(speeds):g} is not above 0", kind=ErrorKind.INVALID)
        await self.access()
        async with self.motion.begin(self.halt):
            for waypoint in waypoints:
                limits = [min(fastest, speed) for speed in speeds]
                await self.world.sleep_until(self.axes.send_together(waypoint, limits, self.world.now()))

    async def move_through_joint_positions_streamed(
        self, batches: AsyncIterator[Sequence[TrajectoryPoint]], *, extra: Extra = None
    ) -> AsyncGenerator[BatchAck, None]:
        """Reach each point at its time, on straight lines in joint space; the arm rests between batches."""
        await self.access()
        start = self.world.now()
        async for batch in batches:
            async with self.motion.begin(self.halt):
                for point in batch:
                    await self._reach(self._checked(point.positions), start + point.time.total_seconds())
            yield BatchAck()

    async def _reach(self, values: Sequence[float], when: float) -> None:
        now = self.world.now()
        remaining = when - now
        distances = [abs(value - current) for value, current in zip(values, self.axes.values(now), strict=True)]
        if remaining <= 0:
            if max(distances, default=0.0) < 1e-6:  # the first point, at time zero, is the current position
                return
            raise MachineError(f"{self.name}: a trajectory point arrived after its time", kind=ErrorKind.PRECONDITION)
        self.axes.send(values, [max(distance / remaining, 1e-9) for distance in distances], now)
        await self.world.sleep_until(when)

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        """Return the kinematics in SVA JSON and as a structure; there are no meshes."""
        await self.access()
        return kinematics(self.chain)

    async def get_3d_models(self, *, extra: Extra = None) -> Mapping[str, Mesh]:
        """Return no models."""
        await self.access()
        return {}

    async def get_properties(self, *, extra: Extra = None) -> ArmProperties:
        """Report support of Cartesian commands; no manual mode."""
        await self.access()
        return ArmProperties(support_manual_mode=False, support_cartesian_commands=True)

    async def set_manual_mode(self, manual_mode: bool, enabled_for: int = 0, *, extra: Extra = None) -> None:
        """Raise Unsupported: a simulated arm cannot be moved by hand."""
        raise Unsupported(f"{self.name} cannot be guided by hand")

    async def get_manual_mode(self, *, extra: Extra = None) -> bool:
        """Return False."""
        await self.access()
        return False

    async def get_geometries(self, *, extra: Extra = None) -> list[Geometry]:
        """Return the shapes of the links; a box around the flange if there are none."""
        shapes = shapes_at(self.chain, await self.positions(), self.name.short)
        if shapes:
            return shapes
        end = await self.get_end_position()
        return [Geometry(end, box=RectangularPrism(Vector3(60.0, 60.0, 60.0)), label=self.name.short)]
