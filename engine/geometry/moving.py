"""The current pose of components whose frame follows their joints."""

from __future__ import annotations

from engine.components.motion.arm import Arm
from engine.components.motion.gantry import Gantry
from engine.components.motion.gripper import Gripper
from engine.geometry.forward import model_of, output
from engine.resource import Resource
from schema import ErrorKind, MachineError, Pose


async def pose_of(driver: Resource) -> Pose:
    """Return the pose of a component's frame in the frame in which it is mounted; that of others never changes."""
    if isinstance(driver, Arm):
        return await driver.get_end_position()
    if isinstance(driver, Gantry):
        return output(model_of(await driver.get_kinematics()), await driver.get_position())
    if isinstance(driver, Gripper):
        try:
            model = model_of(await driver.get_kinematics())
            inputs = await driver.get_current_inputs() if model.joints else ()
        except NotImplementedError:
            return Pose()  # a gripper without joints does not move
        except MachineError as error:
            if error.kind is not ErrorKind.UNSUPPORTED:
                raise
            return Pose()
        return output(model, inputs)
    return Pose()
