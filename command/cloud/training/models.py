"""`machine cloud train`: reports of models, their use on machines, and their files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from command.cloud.configurations.config import save
from command.cloud.group import current, find
from command.cloud.training.train import run_training, train
from command.output import json_option

if TYPE_CHECKING:
    from training.client import TrainingClient
    from training.jobs import Figures, Report

__all__ = ["train"]  # with the commands of this module

WORST: Final = 10  # mistakes that are printed


@train.command()
@click.argument("job")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def download(job: str, folder: Path) -> None:
    """Unpack the model of JOB into FOLDER, and print its files. Files that exist there are replaced."""

    async def work(client: TrainingClient) -> None:
        for path in await client.job(job).download(folder):
            click.echo(str(path))

    run_training(work)


@train.command()
@click.argument("job")
@json_option
def report(job: str, as_json: bool) -> None:
    """Show how well the model of JOB does on pictures that it was not trained with, and its worst mistakes."""

    async def work(client: TrainingClient) -> None:
        from training.jobs import encode_report

        read = await client.job(job).report()
        if read is None:
            raise click.ClickException(f"the model of the job {job} has no report: its script has written none")
        click.echo(encode_report(read) if as_json else "\n".join(lines_of(read)))

    run_training(work, as_json=as_json)


@train.command()
@click.argument("job")
@click.argument("machine")
@click.option("--yes", is_flag=True, help="Save without asking.")
def use(job: str, machine: str, yes: bool) -> None:
    """Use the model of JOB on MACHINE: show the change of its configuration, ask, and save it.

    Adds the package, an `onnx` model service and an `mlmodel` vision service, or changes the version there.
    """

    async def work(client: TrainingClient) -> None:
        from training import with_model
        from training.jobs import JobState

        trained = await client.get_training_job(job)
        if trained.state is not JobState.COMPLETED:
            raise click.ClickException(f"the job {job} is {trained.state.value}, so it has no model")
        part = await find(client.api, machine)
        before = await current(client.api, part)
        document = with_model(json.loads(before["config_json"]), trained.model, trained.model_version)
        await save(client.api, part, before, json.dumps(document), ask_first=not yes)

    run_training(work)


def lines_of(report: Report) -> Iterator[str]:
    """Yield a report for people."""
    from support.text.terminal import clean, table

    figures = report.test if report.test.pictures else report.cross_validation
    yield f"{len(report.pictures.training)} pictures for training, {report.test.pictures} for the test"
    yield from _headline(report)
    if figures.labels:
        yield ""
        yield from _table_of_labels(report, figures)
    if figures.worst_mistakes:
        rows = [
            [mistake.id, *(", ".join(names) or "-" for names in (mistake.labels, mistake.predicted)),
             f"{mistake.score:.2f}"]
            for mistake in figures.worst_mistakes[:WORST]
        ]  # fmt: skip
        yield ""
        yield from table(["WORST MISTAKES", "LABELS", "MODEL", "SCORE"], rows)
    for remark in report.remarks:
        yield f"\nremark: {clean(remark)}"


def _headline(report: Report) -> Iterator[str]:
    test, others = report.test, report.cross_validation
    for name, value in (
        ("accuracy", test.accuracy),
        ("always the most frequent answer", test.accuracy_of_the_most_frequent_answer),
        ("cross-validated accuracy", others.accuracy),
        ("mAP50", test.map50),
        ("mAP75", test.map75),
    ):
        if value is not None:
            yield f"{name}: {_percent(value)}"


def _table_of_labels(report: Report, figures: Figures) -> Iterator[str]:
    from support.text.terminal import table

    if report.detects:
        rows = [
            [name, str(each.boxes), _percent(each.ap50), _percent(each.ap75)] for name, each in figures.labels.items()
        ]
        yield from table(["LABEL", "BOXES", "AP50", "AP75"], rows)
    else:
        rows = [
            [name, str(each.pictures), _percent(each.precision), _percent(each.recall)]
            for name, each in figures.labels.items()
        ]
        yield from table(["LABEL", "PICTURES", "PRECISION", "RECALL"], rows)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"
