"""Training jobs: their states, the rules of submission, and their events. Pure.

Public, in the order in which to read them:

* `lifecycle`: States of a training job: one table, and the function that reads it
* `submission`: Rules that a dataset must meet before a model is trained from it
* `events`: Events of a job: status, log, metric and progress; their stored form, and the lines by which a program
  reports
* `report`: The report of a trainer about its model, `report.json`, as far as pages show it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.jobs.events import JobEvent as JobEvent
    from training.jobs.events import Log as Log
    from training.jobs.events import Metric as Metric
    from training.jobs.events import Progress as Progress
    from training.jobs.events import Status as Status
    from training.jobs.events import decode_event as decode_event
    from training.jobs.events import encode_event as encode_event
    from training.jobs.lifecycle import FINAL as FINAL
    from training.jobs.lifecycle import RUNNING as RUNNING
    from training.jobs.lifecycle import JobHappening as JobHappening
    from training.jobs.lifecycle import JobState as JobState
    from training.jobs.lifecycle import next_state as next_state
    from training.jobs.report import MAX_SIZE as MAX_SIZE
    from training.jobs.report import Figures as Figures
    from training.jobs.report import LabelFigures as LabelFigures
    from training.jobs.report import Mistake as Mistake
    from training.jobs.report import PlacedBox as PlacedBox
    from training.jobs.report import Report as Report
    from training.jobs.report import encode_report as encode_report
    from training.jobs.report import read_report as read_report
    from training.jobs.submission import MIN_EXAMPLES as MIN_EXAMPLES
    from training.jobs.submission import BoxLabel as BoxLabel
    from training.jobs.submission import ExampleCounts as ExampleCounts
    from training.jobs.submission import ModelType as ModelType
    from training.jobs.submission import TrainingPicture as TrainingPicture
    from training.jobs.submission import check_examples as check_examples
    from training.jobs.submission import checked_labels as checked_labels
    from training.jobs.submission import count_examples as count_examples
    from training.jobs.submission import shortfalls_of as shortfalls_of
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "lifecycle": ["FINAL", "RUNNING", "JobHappening", "JobState", "next_state"],
            "submission": [
                "MIN_EXAMPLES",
                "BoxLabel",
                "ExampleCounts",
                "ModelType",
                "TrainingPicture",
                "check_examples",
                "checked_labels",
                "count_examples",
                "shortfalls_of",
            ],
            "events": ["JobEvent", "Log", "Metric", "Progress", "Status", "decode_event", "encode_event"],
            "report": [
                "MAX_SIZE",
                "Figures",
                "LabelFigures",
                "Mistake",
                "PlacedBox",
                "Report",
                "encode_report",
                "read_report",
            ],
        },
    )
