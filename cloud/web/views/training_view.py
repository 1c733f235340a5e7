"""View models of the training pages: jobs with progress and curves, reports, versions of models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cloud.domain.training.jobs import JobRecord, StoredJobEvent
from cloud.services.training.training_pages import SeenJob
from cloud.web.views.plots import Curve, curve
from rpc.pages import Piece
from support.text.words import span
from training.jobs import (
    FINAL,
    RUNNING,
    Figures,
    JobState,
    LabelFigures,
    Log,
    Metric,
    Mistake,
    ModelType,
    PlacedBox,
    Progress,
    Report,
    Status,
)

TYPES: Final[Mapping[ModelType, str]] = {
    ModelType.SINGLE_LABEL_CLASSIFICATION: "one label for each picture",
    ModelType.MULTI_LABEL_CLASSIFICATION: "any number of labels for each picture",
    ModelType.OBJECT_DETECTION: "boxes around objects",
}
STATES: Final[Mapping[JobState, tuple[str, str]]] = {
    JobState.PENDING: ("unconfigured", "waiting"),
    JobState.IN_PROGRESS: ("configuring", "training"),
    JobState.CANCELING: ("removing", "stopping"),
    JobState.COMPLETED: ("ready", "completed"),
    JobState.FAILED: ("unhealthy", "failed"),
    JobState.CANCELED: ("unconfigured", "canceled"),
}
"""Style and text of each state."""

MAX_CURVES: Final = 12
MAX_LABELS: Final = 30  # labels in a confusion matrix: a larger one cannot be read
MISTAKES: Final = 24  # pictures in a report
BOXES: Final = 30  # of people, and of the model, on one of them
THRESHOLDS: Final = 101  # of a slider from 0 to 1


@dataclass(frozen=True, slots=True)
class LogLine:
    """An event as a line of the log."""

    number: int
    time: datetime
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class ShownJob:
    """A job, for the templates."""

    id: str
    css: str
    state: str
    reason: str
    done: int
    total: int
    remaining: str  # "" if it cannot be estimated
    may_cancel: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job in the list."""

    id: str
    name: str
    css: str
    state: str
    type: str
    created: datetime


def listed_job(job: JobRecord) -> ListedJob:
    """Return the view model of a job in the list."""
    name = f"{job.task.model_name} {job.task.model_version}"
    return ListedJob(job.id, name, *STATES[job.state], type_text(job), job.created)


def type_text(job: JobRecord) -> str:
    """Return what kind of model a job makes."""
    return f"script {job.task.script}" if job.task.script else TYPES.get(job.task.model_type, "model")


def shown_job(seen: SeenJob, now: datetime) -> ShownJob:
    """Return the state of a job, with the time that remains if it continues at the same speed."""
    job, progress = seen.job, seen.progress
    css, text = STATES[job.state]
    done = total = 0
    remaining = ""
    if progress is not None and isinstance(progress.event, Progress):
        done, total = progress.event.done, progress.event.total
        begin = seen.since.time if seen.since is not None else None
        if job.state is JobState.IN_PROGRESS and begin is not None and 0 < done < total and progress.time > begin:
            needed = (progress.time - begin).total_seconds() * (total - done) / done
            remaining = span(max(1.0, needed - (now - progress.time).total_seconds()))
    may_cancel = job.state is JobState.PENDING or job.state in RUNNING - {JobState.CANCELING}
    return ShownJob(job.id, css, text, job.reason, done, total, remaining, may_cancel, job.state in FINAL)


def curves(metrics: Iterable[StoredJobEvent]) -> list[Curve]:
    """Return a curve for each metric, in order of their first value, at most MAX_CURVES."""
    series: dict[str, list[tuple[float, float]]] = {}
    for happened in metrics:
        if isinstance(happened.event, Metric):
            metric = happened.event
            series.setdefault(metric.name, []).append((float(metric.step), metric.value))
    drawn = (curve(name, values) for name, values in list(series.items())[:MAX_CURVES])
    return [line for line in drawn if line is not None]


def lines(events: Iterable[StoredJobEvent]) -> list[LogLine]:
    """Return the log: what the program printed, and changes of the state."""
    shown: list[LogLine] = []
    for happened in events:
        match happened.event:
            case Log(message, level):
                shown.append(LogLine(happened.number, happened.time, level, message))
            case Status(state, reason):
                level = "error" if state is JobState.FAILED else "info"
                text = STATES[state][1] + (f": {reason}" if reason else "")
                shown.append(LogLine(happened.number, happened.time, level, text))
    return shown


def pieces(seen: SeenJob, now: datetime) -> list[Piece]:
    """Return the live parts of the page of a job."""
    state = shown_job(seen, now)
    facts = (state.state, state.reason, state.done, state.total, seen.reported)
    last = seen.metrics[-1].number if seen.metrics else 0
    return [
        Piece("job-state", "job_state", (state, seen.job, seen.reported), facts),
        Piece("curves", "curve_list", (curves(seen.metrics),), last),
    ]


# ---- reports


def headline(report: Report | None) -> Figures:
    """Return the figures by which a model is judged: those of the test, or else of the cross-validation."""
    if report is None:
        return Figures()
    return report.test if report.test.pictures else report.cross_validation


@dataclass(frozen=True, slots=True)
class Matrix:
    """A confusion matrix: for each label, how often the model said each label, and the share of the row."""

    labels: Sequence[str]
    rows: Sequence[tuple[str, Sequence[tuple[int, float]]]]


@dataclass(frozen=True, slots=True)
class ShownBox:
    """A box of a mistake of a detector, in percent of the picture."""

    said: bool  # by the model, not by a person
    text: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ShownMistake:
    """A picture on which the model and the labels differ."""

    id: str
    labels: str
    predicted: str
    score: float
    missed: int  # boxes that a detector does not find
    present: bool  # whether the dataset still contains it
    boxes: list[ShownBox]


def matrix(report: Report, figures: Figures) -> Matrix | None:
    """Return the confusion matrix; None if there is none, it is malformed, or too large to be read."""
    labels, counts = report.labels, figures.confusion
    if not counts or len(labels) > MAX_LABELS or len(counts) != len(labels):
        return None
    if any(len(row) != len(labels) for row in counts):
        return None
    rows = [
        (label, [(count, count / max(1, sum(row))) for count in row]) for label, row in zip(labels, counts, strict=True)
    ]
    return Matrix(labels, rows)


def mistakes(figures: Sequence[Figures], present: set[str]) -> list[ShownMistake]:
    """Return the worst mistakes, each picture once, at most MISTAKES, the surest first."""
    by_id: dict[str, Mistake] = {}
    for part in figures:
        for mistake in part.worst_mistakes:
            by_id.setdefault(mistake.id, mistake)
    worst = sorted(by_id.values(), key=lambda mistake: -mistake.score)[:MISTAKES]
    return [
        ShownMistake(
            mistake.id,
            " and ".join(mistake.labels) or "nothing",
            " and ".join(mistake.predicted) or "nothing",
            mistake.score,
            mistake.missed,
            mistake.id in present,
            [*_boxes(mistake.boxes, said=False), *_boxes(mistake.detections, said=True)],
        )
        for mistake in worst
    ]


def _boxes(boxes: Sequence[PlacedBox], *, said: bool) -> Iterator[ShownBox]:
    for box in boxes[:BOXES]:
        text = box.label if box.score is None else f"model: {box.label} ({box.score:.2f})"
        left, top, right, bottom = (min(1.0, max(0.0, at)) for at in (box.x_min, box.y_min, box.x_max, box.y_max))
        yield ShownBox(said, text, 100 * left, 100 * top, 100 * max(0.0, right - left), 100 * max(0.0, bottom - top))


def thresholds(report: Report) -> bool:
    """Whether the report has what the slider needs: the probabilities of pictures, or counts of a detector."""
    return bool(report.test.scores or report.cross_validation.scores or any(map(_counted, _entries(report))))


def _entries(report: Report) -> list[LabelFigures]:
    return [report.test.labels.get(label, LabelFigures()) for label in report.labels]


def _counted(entry: LabelFigures) -> bool:
    return len(entry.answers) == len(entry.right) == THRESHOLDS


def scores_json(report: Report) -> dict[str, object]:
    """Return what the slider needs: the probabilities of all pictures that the model was not fitted to.

    For a detector, these are `counts` of each label in the test, for thresholds of 0, 0.01, ... 1.
    """
    none = [0] * THRESHOLDS
    sets = {"test": report.test.scores, "cross-validation": report.cross_validation.scores}
    size = len(report.labels)
    return {
        "labels": report.labels,
        "exclusive": report.model_type == ModelType.SINGLE_LABEL_CLASSIFICATION.name.lower(),
        "sets": {
            name: [
                [[report.labels.index(label) for label in entry.labels if label in report.labels], entry.probabilities]
                for entry in scores
                if len(entry.probabilities) == size
            ]
            for name, scores in sets.items()
        },
        "pictures": report.test.pictures,
        "counts": [
            {"boxes": entry.boxes, "answers": entry.answers, "right": entry.right}
            if _counted(entry)
            else {"boxes": entry.boxes, "answers": none, "right": none}
            for entry in _entries(report)
        ]
        if report.detects
        else [],
    }
