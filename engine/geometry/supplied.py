"""Frames and shapes that a caller adds to those of the machine for one call, or that a service returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schema import Geometry, PoseInFrame


@dataclass(frozen=True, slots=True)
class SuppliedFrame:
    """The published message Transform: `pose_in_observer_frame` is the frame's pose, in the frame of its parent."""

    reference_frame: str
    pose_in_observer_frame: PoseInFrame
    physical_object: Geometry | None = None
    uuid: bytes = b""
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GeometriesInFrame:
    """Shapes, and the frame in which they are; an empty frame is `world`."""

    reference_frame: str = ""
    geometries: Sequence[Geometry] = ()
