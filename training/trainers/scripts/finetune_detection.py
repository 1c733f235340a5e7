"""A training script: a detector from pictures with boxes, whose network is trained further with PyTorch.

Change it as you like: `training/trainers/finetune/detection.py` is the trainer, `detector.py` next to it has the head
and the loss, and `network.py` the network. `training/trainers/detection.py` fits the head before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from training.trainers.finetune.detection import main as trainer
from training.trainers.scripts.standard import run

ARGUMENTS = ("epochs", "layers", "device")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    return run(trainer, "bounding_box_annotations", ("object_detection",), arguments, ARGUMENTS)


if __name__ == "__main__":
    sys.exit(main())
