"""Attributes of `transform`. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from models.image_file.attributes import Distortion, Intrinsics
from models.vision.transform.steps import Classifications, Detections, Step, step
from schema import Attributes


class StepEntry(msgspec.Struct, kw_only=True, frozen=True):
    """One step of the pipeline."""

    type: str  # identity, resize, crop, rotate, detections or classifications
    attributes: dict[str, Any] = {}  # attributes of the step, listed in How to detect objects


class TransformConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the transform camera."""

    source: str  # the camera whose images are transformed
    pipeline: tuple[StepEntry, ...]  # the steps in order
    intrinsic_parameters: Intrinsics | None = None  # reported by get_properties; default: the source's, transformed
    camera_parameters: Intrinsics | None = None  # another name of intrinsic_parameters
    distortion_parameters: Distortion | None = None  # reported by get_properties; default: the source's

    def __post_init__(self) -> None:
        self.steps()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps of the pipeline. ValueError names an invalid entry."""
        parsed = []
        for index, entry in enumerate(self.pipeline):
            try:
                parsed.append(step(entry.type, entry.attributes))
            except ValueError as error:
                raise ValueError(f"pipeline.{index}: {error}") from None
        return tuple(parsed)

    def requires(self) -> Iterable[str]:
        """Require the source and every vision service of the pipeline."""
        yield self.source
        for pipeline_step in self.steps():
            if isinstance(pipeline_step, Detections):
                yield pipeline_step.detector_name
            elif isinstance(pipeline_step, Classifications):
                yield pipeline_step.classifier_name
