"""Pretrained weights that are part of the product. Their license and origin are in the files LICENSE and NOTICE."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BACKBONE: Final = Path(__file__).with_name("mobilenet_v2.onnx")
"""MobileNetV2; `tools/backbone.py` makes the file."""
NOTICES: Final = ("NOTICE", "LICENSE")
"""Files next to weights that have to be passed on with models that contain them."""


def add_notices(weights: Path, folder: Path) -> None:
    """Copy the notices that lie next to a file of weights, if any, to a folder with a model that contains them."""
    for name in NOTICES:
        if (notice := weights.with_name(name)).is_file():
            (folder / name).write_bytes(notice.read_bytes())
