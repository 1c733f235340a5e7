"""Training of models: jobs and their events, engines, trainers, and the client for programs of users.

The names of the client are loaded on first use, because the cloud and trainers import this package, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from training.client.blocking import connect_blocking
    from training.client.client import connect
    from training.client.errors import SubmissionRefused, TrainingCanceled, TrainingFailed
    from training.jobs.events import Log, Metric, Progress, Status
    from training.jobs.lifecycle import State
    from training.jobs.report import Report
    from training.jobs.submission import ModelType

__all__ = [
    "Log",
    "Metric",
    "ModelType",
    "Progress",
    "Report",
    "State",
    "Status",
    "SubmissionRefused",
    "TrainingCanceled",
    "TrainingFailed",
    "connect",
    "connect_blocking",
]

_MODULES: Final = {
    "connect": "training.client.client",
    "connect_blocking": "training.client.blocking",
    "SubmissionRefused": "training.client.errors",
    "TrainingCanceled": "training.client.errors",
    "TrainingFailed": "training.client.errors",
    "Log": "training.jobs.events",
    "Metric": "training.jobs.events",
    "Progress": "training.jobs.events",
    "Status": "training.jobs.events",
    "State": "training.jobs.lifecycle",
    "Report": "training.jobs.report",
    "ModelType": "training.jobs.submission",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
