"""A training script: a classifier from pictures with tags, as machine-cloud trains it.

Change it as you like: `training/trainers/classification.py` is the trainer, and `training/trainers/head.py` what is
fitted to the features of the backbone in `training/weights`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from training.trainers.classification import MULTI, SINGLE
from training.trainers.classification import main as trainer
from training.trainers.scripts.standard import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    return run(trainer, "classification_annotations", (SINGLE, MULTI), arguments)


if __name__ == "__main__":
    sys.exit(main())
