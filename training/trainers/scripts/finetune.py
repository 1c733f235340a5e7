"""A training script: a classifier from pictures with tags, whose network is trained further with PyTorch.

Change it as you like: `training/trainers/finetune/training.py` is the trainer, `fitting.py` next to it has the epochs
and the changes of pictures, and `network.py` the network.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from training.trainers.classification import MULTI, SINGLE
from training.trainers.finetune.training import main as trainer
from training.trainers.scripts.standard import run

ARGUMENTS = ("epochs", "layers", "mirror", "device")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    return run(trainer, "classification_annotations", (SINGLE, MULTI), arguments, ARGUMENTS)


if __name__ == "__main__":
    sys.exit(main())
