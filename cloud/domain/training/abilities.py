"""What this cloud can train. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from schema import ErrorKind, MachineError
from training.jobs import ModelType

NO_ENGINE: Final = "this cloud runs no training jobs: start machine-cloud with --training-jobs 1 or more"
NO_SCRIPTS: Final = "this cloud runs no training scripts: start machine-cloud with --training-python PROGRAM"
CONTAINER: Final = "local"
"""Key of the only environment of custom scripts."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """Why something cannot be trained; an empty text: it can."""

    models: str = NO_ENGINE
    scripts: str = NO_SCRIPTS
    environment: str = field(default="", compare=False)  # of scripts, for people

    def check(self, model_type: ModelType) -> None:
        """Raise MachineError if a job of this type cannot be trained here."""
        if model_type is ModelType.UNSPECIFIED:
            raise MachineError("the job names no model type", kind=ErrorKind.INVALID, remedy="pass a model_type")
        _check(self.models)

    def check_scripts(self) -> None:
        """Raise MachineError if scripts of the registry cannot be run here."""
        _check(self.scripts)


def _check(reason: str) -> None:
    if reason:
        raise MachineError(reason, kind=ErrorKind.PRECONDITION)
