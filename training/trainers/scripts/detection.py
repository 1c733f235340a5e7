"""A training script: a detector from pictures with boxes, as machine-cloud trains it.

Change it as you like: `training/trainers/detection.py` is the trainer, and `training/trainers/detectors` has the
network that is fitted to the maps of the backbone in `training/weights`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from training.trainers.detection import main as trainer
from training.trainers.scripts.standard import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    return run(trainer, "bounding_box_annotations", ("object_detection",), arguments)


if __name__ == "__main__":
    sys.exit(main())
