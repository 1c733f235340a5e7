"""PyTorch as the trainers use it, and their options. It is imported by name when a training starts, because checks and
tests run without it."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Sequence
from typing import Any, Final

from training.trainers import program
from training.trainers.features import calm

DEVICES: Final = ("auto", "cpu", "cuda")
LAYERS: Final = 13  # convolutions of the last five blocks of the shipped backbone
EPOCHS: Final = 30


def options(description: str | None, types: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser with the options of all trainers that fine-tune; see `training.trainers.program.options`."""
    parser = program.options(description, types)
    parser.add_argument("--epochs", type=count, default=EPOCHS, help="at most")
    parser.add_argument("--layers", type=count, default=LAYERS, help="last convolutions that are trained")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    return parser


def loaded(seed: int) -> Any:
    """Return PyTorch, set so that the same training gives the same results; ValueError without it."""
    calm()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same results at each time
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin take the time of other programs
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise ValueError(f"this trainer needs PyTorch: {error}") from error
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 0)) or len(os.sched_getaffinity(0)))
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing here reads such memory
    torch.set_flush_denormal(True)  # where a model is right already, gradients are so small that they take longer
    return torch


def chosen_device(torch: Any, asked: str) -> str:
    """Return `cpu` or `cuda` for one of DEVICES; ValueError if there is no such device."""
    able = torch.cuda.is_available()
    if asked == "cuda" and not able:
        raise ValueError("--device=cuda: PyTorch finds no GPU with CUDA; use --device=cpu or --device=auto")
    return "cuda" if able and asked != "cpu" else "cpu"


def count(text: str) -> int:
    """Return a number of epochs or layers from an argument."""
    number = int(text)
    if not 0 <= number <= 10_000:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and 10000")
    return number
