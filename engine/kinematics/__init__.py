"""Kinematics of arms: file formats, arms by name, Jacobians and inverse kinematics. Pure.

Public, in the order in which to read them:

* `arms` (module): Kinematics of common arms by name, from the figures that their vendors publish
* `formats`: Reads kinematics in every published form
* `mechanism`: A chain of joints in the form in which it is computed: one placement and one axis for each joint
* `inverse`: Inverse kinematics: the positions of joints that bring the output of a mechanism to a pose
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.kinematics import arms as arms
    from engine.kinematics.formats import MAX_BYTES as MAX_BYTES
    from engine.kinematics.formats import chain_of as chain_of
    from engine.kinematics.formats import read_chain as read_chain
    from engine.kinematics.inverse import apart as apart
    from engine.kinematics.inverse import deviation as deviation
    from engine.kinematics.inverse import nearest as nearest
    from engine.kinematics.inverse import solutions as solutions
    from engine.kinematics.inverse import track as track
    from engine.kinematics.mechanism import IDENTITY as IDENTITY
    from engine.kinematics.mechanism import Axis as Axis
    from engine.kinematics.mechanism import Flat as Flat
    from engine.kinematics.mechanism import Mechanism as Mechanism
    from engine.kinematics.mechanism import after_joint as after_joint
    from engine.kinematics.mechanism import compose as compose
    from engine.kinematics.mechanism import flat as flat
    from engine.kinematics.mechanism import inverse_of as inverse_of
    from engine.kinematics.mechanism import mechanism_of as mechanism_of
    from engine.kinematics.mechanism import rotation_between as rotation_between
    from engine.kinematics.mechanism import transform_of as transform_of
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "formats": ["MAX_BYTES", "chain_of", "read_chain"],
            "mechanism": [
                "IDENTITY",
                "Axis",
                "Flat",
                "Mechanism",
                "after_joint",
                "compose",
                "flat",
                "inverse_of",
                "mechanism_of",
                "rotation_between",
                "transform_of",
            ],
            "inverse": ["apart", "deviation", "nearest", "solutions", "track"],
        },
        modules=["arms"],
    )
