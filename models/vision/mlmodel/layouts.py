"""Attributes of `mlmodel`. Pure."""

from __future__ import annotations

from typing import Final

BOXES: Final = "boxes"

LAYOUTS: Final = (BOXES, "yolov5", "yolov8", "yolov10")
"""Names of all layouts."""
