"""Forward kinematics: computes the pose of the output of links and joints from the joint positions. Pure.

Lengths are in mm; joint positions are in degrees for rotating and mm for sliding joints, in the order of the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.components.motion.kinematics import (
    JointType,
    KinematicJoint,
    KinematicLink,
    KinematicModel,
    Kinematics,
    KinematicsFormat,
    LinkPose,
)
from engine.geometry.frames import compose
from schema import FORMS, ErrorKind, MachineError, Orientation, Pose, Quaternion, to_orientation, to_quaternion


def model_of(description: Kinematics) -> KinematicModel:
    """Return the structure of a driver's kinematics; raises MachineError (UNSUPPORTED) for formats other than SVA."""
    if description.model is not None and (description.model.links or description.model.joints):
        return description.model
    if description.format is not KinematicsFormat.SVA:
        raise MachineError(
            f"kinematics in the format {description.format.name} are not supported",
            kind=ErrorKind.UNSUPPORTED,
            remedy="provide them as SVA, or as a model",
        )
    from engine.geometry.sva import kinematics, load

    model = kinematics(load(description.kinematics_data, "kinematics_data")).model
    assert model is not None
    return model


def output(model: KinematicModel, positions: Sequence[float]) -> Pose:
    """Return the pose of the model's first output frame, or of its only end, in the frame in which it is mounted.

    Raises MachineError: INVALID if the number of positions is not the number of joints, PRECONDITION if the links and
    joints are not connected.
    """
    values = _values(model, positions)
    parts: dict[str, KinematicLink | KinematicJoint] = {link.id: link for link in model.links}
    parts |= {joint.id: joint for joint in model.joints}
    name = end_of(model, parts)
    pose = Pose()
    for _ in parts:
        part = parts[name]
        own = pose_of_link(part.pose) if isinstance(part, KinematicLink) else _joint(part, values[part.id])
        pose = compose(own, pose)
        name = part.parent
        if name not in parts:
            return pose
    if not parts:
        return pose
    raise MachineError(f"the parents in the kinematics of {model.name!r} form a cycle", kind=ErrorKind.PRECONDITION)


def end_of(model: KinematicModel, parts: dict[str, KinematicLink | KinematicJoint]) -> str:
    """Return the name of the output of a model, whose `parts` are by name; MachineError if it has several ends."""
    if model.output_frames and model.output_frames[0] in parts:
        return model.output_frames[0]
    parents = {part.parent for part in parts.values()}
    ends = [name for name in parts if name not in parents]
    if len(ends) != 1 and parts:
        raise MachineError(
            f"the kinematics of {model.name!r} have {len(ends)} ends instead of one: {', '.join(ends) or '(none)'}",
            kind=ErrorKind.PRECONDITION,
            remedy="list the output frame in output_frames",
        )
    return ends[0] if ends else ""


def _values(model: KinematicModel, positions: Sequence[float]) -> dict[str, float]:
    """Return the position of every joint, including joints that follow another."""
    free = [joint for joint in model.joints if joint.mimic is None]
    if len(free) != len(positions):
        raise MachineError(
            f"{len(positions)} joint positions for the {len(free)} joints of {model.name!r}", kind=ErrorKind.INVALID
        )
    values = {joint.id: position for joint, position in zip(free, positions, strict=True)}
    for joint in model.joints:
        if joint.mimic is not None:
            values[joint.id] = values.get(joint.mimic.joint, 0.0) * joint.mimic.multiplier + joint.mimic.offset
    return values


def _joint(joint: KinematicJoint, position: float) -> Pose:
    x, y, z = joint.axis.x, joint.axis.y, joint.axis.z
    axis_length = math.hypot(x, y, z)
    if not axis_length:
        raise MachineError(f"the joint {joint.id!r} has no axis", kind=ErrorKind.PRECONDITION)
    if joint.type is JointType.PRISMATIC:
        return Pose(x * position / axis_length, y * position / axis_length, z * position / axis_length)
    _, convert = FORMS["axis_angles"]
    return _turned((0.0, 0.0, 0.0), convert(x, y, z, math.radians(position)))


def pose_of_link(pose: LinkPose) -> Pose:
    """Return the pose of a link, whichever form its rotation has."""
    translation = (pose.translation.x, pose.translation.y, pose.translation.z)
    if (q := pose.quaternion) is not None:
        return _turned(translation, (q.w, q.x, q.y, q.z))
    if (o := pose.orientation_vector) is not None:
        return _turned(translation, to_quaternion(o if o.o_x or o.o_y or o.o_z else Orientation(theta=o.theta)))
    if (e := pose.euler_angles) is not None:
        return _turned(translation, FORMS["euler_angles"][1](e.roll, e.pitch, e.yaw))
    if (a := pose.axis_angles) is not None and (a.rx or a.ry or a.rz):
        return _turned(translation, FORMS["axis_angles"][1](a.rx, a.ry, a.rz, a.theta))
    return Pose(*translation)


def _turned(translation: tuple[float, float, float], rotation: Quaternion) -> Pose:
    orientation = to_orientation(rotation)
    return Pose(*translation, orientation.o_x, orientation.o_y, orientation.o_z, orientation.theta)
