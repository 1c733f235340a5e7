"""Frames, poses and kinematics.

Public, in the order in which to read them:

* `frames`: The frame system: the pose of each part relative to its parent, and transforms between frames
* `moving`: The current pose of components whose frame follows their joints
* `spatial`: Rotations and rigid transforms in plain Python, sufficient for an arm
* `supplied`: Frames and shapes that a caller adds to those of the machine for one call, or that a service returns
* `sva`: Reads and writes kinematics in the SVA JSON format
* `chain`: Forward kinematics of a chain, and the chain of the simulated arm
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.geometry.chain import SIX_AXIS as SIX_AXIS
    from engine.geometry.chain import forward_kinematics as forward_kinematics
    from engine.geometry.frames import ORIGIN_SUFFIX as ORIGIN_SUFFIX
    from engine.geometry.frames import FramePart as FramePart
    from engine.geometry.frames import Frames as Frames
    from engine.geometry.frames import compose as compose
    from engine.geometry.frames import frames_of_document as frames_of_document
    from engine.geometry.moving import pose_of as pose_of
    from engine.geometry.spatial import Transform as Transform
    from engine.geometry.supplied import SuppliedFrame as SuppliedFrame
    from engine.geometry.sva import Chain as Chain
    from engine.geometry.sva import Joint as Joint
    from engine.geometry.sva import Link as Link
    from engine.geometry.sva import kinematics as kinematics
    from engine.geometry.sva import sliding as sliding
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "frames": ["ORIGIN_SUFFIX", "FramePart", "Frames", "compose", "frames_of_document"],
            "moving": ["pose_of"],
            "spatial": ["Transform"],
            "supplied": ["SuppliedFrame"],
            "sva": ["Chain", "Joint", "Link", "kinematics", "sliding"],
            "chain": ["SIX_AXIS", "forward_kinematics"],
        },
    )
