"""Attributes of `motion`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec

from schema import Attributes


class MotionConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the motion service. The service `builtin` exists without an entry."""

    margin_mm: Annotated[float, msgspec.Meta(ge=0.5, le=500)] = 5.0  # distance that shapes keep from each other
    plan_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 10.0  # time for searching a way around obstacles
    seed: Annotated[int, msgspec.Meta(ge=1)] = 1  # the same request with the same seed has the same plan

    NOT_BUILT: ClassVar[Mapping[str, str]] = {
        "log_file_path": "a log file of the planner",
        "plan_file_path": "files with plans",
        "input_range_override": "limits of joints in the motion service; set them in the kinematics",
    }
