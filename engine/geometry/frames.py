"""The frame system: the pose of each part relative to its parent, and transforms between frames.

Pure. The caller passes the current poses of moving frames (arms, gantries); a transform through a frame whose pose is
not passed raises an error. Lengths are in mm, angles in degrees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from schema import (
    WORLD,
    ErrorKind,
    Geometry,
    MachineError,
    Orientation,
    Pose,
    PoseInFrame,
    Quaternion,
    to_orientation,
    to_quaternion,
)
from schema.document import MachineDocument

ORIGIN_SUFFIX: Final = "_origin"  # of the frame in which a moving part is mounted


@dataclass(frozen=True, slots=True)
class FramePart:
    """A frame with its `pose` in `parent`; `moves` is set if the frame follows the joints of `resource`.

    A moving part has two frames; the one in which it is mounted has its name with the suffix `_origin`.
    """

    name: str
    parent: str = WORLD
    pose: Pose = field(default_factory=Pose)
    geometry: Geometry | None = None
    moves: bool = False
    resource: str = ""  # full name of the component; empty for a frame without one


MOVING: Final = frozenset({"arm", "gantry", "gripper"})
"""Components whose frame follows their joints."""


def frames_of_document(document: MachineDocument) -> Frames:
    """Return the configured frames of a machine's components."""
    return Frames(
        (
            FramePart(
                name=entry.frame.id or entry.name.name,
                parent=entry.frame.parent or WORLD,
                pose=entry.frame.pose,
                geometry=entry.frame.geometry,
                moves=entry.api.subtype in MOVING,
                resource=str(entry.name),
            )
            for entry in document.components
            if entry.frame is not None
        ),
        remotes=[remote.name for remote in document.remotes],
        unplaced=[entry.name.name for entry in document.components if entry.frame is None],
    )


class Frames:
    """A tree of frames under `world`; error messages explain the names in `remotes` and `unplaced`."""

    def __init__(
        self, parts: Iterable[FramePart], *, remotes: Collection[str] = (), unplaced: Collection[str] = ()
    ) -> None:
        self._parts: dict[str, FramePart] = {}
        for part in parts:
            self._parts.setdefault(part.name, part)
        self._remotes = remotes
        self._unplaced = unplaced

    def with_parts(self, parts: Iterable[FramePart]) -> Frames:
        """Return these frames with more parts; a new part replaces one of the same name."""
        return Frames([*parts, *self._parts.values()], remotes=self._remotes, unplaced=self._unplaced)

    def ordered(self) -> list[FramePart]:
        """Return the parts that are connected to `world`, parents first, without the others."""
        connected: dict[str, bool] = {WORLD: True}

        def reaches(name: str, visited: frozenset[str]) -> bool:
            if name not in connected:
                part = self._parts.get(name.removesuffix(ORIGIN_SUFFIX) if name not in self._parts else name)
                if part is None or name in visited:
                    return False
                connected[name] = reaches(part.parent, visited | {name})
                if connected[name] and part.name == name:
                    order.append(part)
            return connected[name]

        order: list[FramePart] = []
        for name in self._parts:
            reaches(name, frozenset())
        return order

    def frame_of(self, component: str) -> str:
        """Return the frame of a component, whose name may differ, or `component` itself if there is none."""
        if component in self._parts:
            return component
        owned = (part.name for part in self._parts.values() if part.resource.rpartition("/")[2] == component)
        return next(owned, component) if component else component

    def moving(self, *names: str) -> list[FramePart]:
        """Return the parts whose joint positions are needed to transform the named frames; raises like `transform`."""
        parts_by_name = {
            part.name: part
            for name in names
            for part, mounted in self._path_to_world(name or WORLD)
            if part.moves and not mounted
        }
        return list(parts_by_name.values())

    def transform(self, source: PoseInFrame, destination: str, moved: Mapping[str, Pose] | None = None) -> PoseInFrame:
        """Return `source` in the frame `destination`; `moved` has poses of moving parts in their `_origin` frames.

        Raises MachineError: NOT_FOUND for a frame that does not exist or is not connected to `world`, UNSUPPORTED for a
        moving frame that is not in `moved`, and for frames of remotes.
        """
        to_world = compose(self._in_world(source.reference_frame or WORLD, moved or {}), source.pose)
        return PoseInFrame(destination, compose(invert(self._in_world(destination, moved or {})), to_world))

    def _in_world(self, name: str, moved: Mapping[str, Pose]) -> Pose:
        pose = Pose()
        for part, mounted in self._path_to_world(name):
            if part.moves and not mounted:
                if part.name not in moved:
                    raise MachineError(
                        f"frame {part.name!r} moves with its joints, whose positions are not known",
                        kind=ErrorKind.UNSUPPORTED,
                        remedy=f"use {part.name}{ORIGIN_SUFFIX} for the place where it is mounted",
                    )
                pose = compose(moved[part.name], pose)
            pose = compose(part.pose, pose)
        return pose

    def _path_to_world(self, name: str) -> list[tuple[FramePart, bool]]:
        """Return the parts from a frame up to `world`, each with True if only the place where it is mounted counts."""
        path: list[tuple[FramePart, bool]] = []
        visited: set[str] = set()
        while name != WORLD:
            if name in visited:
                raise MachineError(f"the parents of frame {name!r} form a cycle", kind=ErrorKind.PRECONDITION)
            visited.add(name)
            part, mounted = self._parts.get(name), False
            if part is None and name.endswith(ORIGIN_SUFFIX):
                part, mounted = self._parts.get(name.removesuffix(ORIGIN_SUFFIX)), True
            if part is None:
                raise self._unknown(name)
            path.append((part, mounted))
            name = part.parent
        return path

    def _unknown(self, name: str) -> MachineError:
        owner = next(
            (remote for remote in self._remotes if name.startswith(f"{remote}:") or name == f"{remote}_{WORLD}"), None
        )
        if owner is not None:
            return MachineError(
                f"frame {name!r} belongs to the remote {owner!r}, whose frames this machine does not have",
                kind=ErrorKind.UNSUPPORTED,
                remedy=f"request the transform from {owner} itself",
            )
        remedy = f"known frames: {', '.join([WORLD, *sorted(self._parts)])}"
        if name in self._unplaced:
            remedy = f"configure a frame for {name}; {remedy}"
        return MachineError(f"there is no frame {name!r}", kind=ErrorKind.NOT_FOUND, remedy=remedy)


def compose(outer: Pose, inner: Pose) -> Pose:
    """Return the pose `inner`, given relative to `outer`, in the frame of `outer`."""
    rotation = _quaternion(outer)
    x, y, z = _rotate(rotation, (inner.x, inner.y, inner.z))
    return _pose((outer.x + x, outer.y + y, outer.z + z), _multiply(rotation, _quaternion(inner)))


def invert(pose: Pose) -> Pose:
    """Return the inverse of `pose`."""
    w, x, y, z = _quaternion(pose)
    inverse = (w, -x, -y, -z)
    return _pose(_rotate(inverse, (-pose.x, -pose.y, -pose.z)), inverse)


def _quaternion(pose: Pose) -> Quaternion:
    if not (pose.o_x or pose.o_y or pose.o_z):
        return to_quaternion(Orientation(theta=pose.theta))  # the direction is missing in the message
    return to_quaternion(Orientation(pose.o_x, pose.o_y, pose.o_z, pose.theta))


def _pose(position: tuple[float, float, float], rotation: Quaternion) -> Pose:
    orientation = to_orientation(rotation)
    return Pose(*position, orientation.o_x, orientation.o_y, orientation.o_z, orientation.theta)


def _multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


def _rotate(rotation: Quaternion, vector: tuple[float, float, float]) -> tuple[float, float, float]:
    w, x, y, z = rotation
    _, rx, ry, rz = _multiply(_multiply(rotation, (0.0, *vector)), (w, -x, -y, -z))
    return rx, ry, rz
