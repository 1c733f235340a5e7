"""Training of models: jobs and their events, engines, trainers, and the client for programs of users.

The names of the client are loaded on first use, because the cloud and trainers import this package, too.

Public, in the order in which to read them:

* `client.errors`: Errors of the training client
* `deployment`: The configuration with which a machine uses a trained model
* `jobs.lifecycle`: States of a training job: one table, and the function that reads it
* `jobs.submission`: Rules that a dataset must meet before a model is trained from it
* `client.client`: The client of a cloud for training, on Trio and on asyncio
* `jobs.events`: Events of a job: status, log, metric and progress; their stored form, and the lines by which a program
  reports
* `jobs.report`: The report of a trainer about its model, `report.json`, as far as pages show it
* `client.blocking`: The same client for programs without an event loop
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.client.blocking import connect_blocking as connect_blocking
    from training.client.client import connect as connect
    from training.client.errors import SubmissionRefused as SubmissionRefused
    from training.client.errors import TrainingCanceled as TrainingCanceled
    from training.client.errors import TrainingFailed as TrainingFailed
    from training.deployment import with_model as with_model
    from training.jobs.events import Log as Log
    from training.jobs.events import Metric as Metric
    from training.jobs.events import Progress as Progress
    from training.jobs.events import Status as Status
    from training.jobs.lifecycle import JobState as JobState
    from training.jobs.report import Report as Report
    from training.jobs.submission import ModelType as ModelType
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "client.errors": ["SubmissionRefused", "TrainingCanceled", "TrainingFailed"],
            "deployment": ["with_model"],
            "jobs.lifecycle": ["JobState"],
            "jobs.submission": ["ModelType"],
            "client.client": ["connect"],
            "jobs.events": ["Log", "Metric", "Progress", "Status"],
            "jobs.report": ["Report"],
            "client.blocking": ["connect_blocking"],
        },
    )
