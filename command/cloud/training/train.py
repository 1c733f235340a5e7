"""`machine cloud train`: submits training jobs and follows them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from command.cloud import login
from command.cloud.group import find_dataset, run_with_client
from command.cloud.organization import ORGANIZATION, organization_of
from command.cloud.times import local, utc
from command.groups import Commands
from command.output import json_option, print_json

if TYPE_CHECKING:
    from rpc.api import ApiClient
    from training.client import Job, Numbered, TrainingClient, TrainingJob

TYPES: Final = {
    "single": "SINGLE_LABEL_CLASSIFICATION",
    "multi": "MULTI_LABEL_CLASSIFICATION",
    "detection": "OBJECT_DETECTION",
}
STATES: Final = ("pending", "in_progress", "canceling", "completed", "failed", "canceled")
_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Print only ids, one per line.")
_VERSION: Final = click.option(
    "--version", default="", help="Version of the model, which can be used once; by default the time."
)
_WAIT: Final = click.option(
    "--wait/--no-wait", default=False, help="Show the log and the progress until the job has ended."
)

Work = Callable[["TrainingClient"], Awaitable[None]]


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  machine cloud train submit parts-pictures parts --label ok --label bad --wait
  machine cloud train ls --status failed
  machine cloud train logs JOB --follow
  machine cloud train report JOB
  machine cloud train use JOB rover
  machine cloud train download JOB parts/
  machine cloud train notify --email ann@example.com
  machine cloud packages upload my-script script.tar.gz --version 1 --type ml_training""",
)
def train() -> None:
    """Train models from labelled pictures: submit jobs, follow them, and use their models.

    DATASET is the id or the name of a dataset, see `machine cloud datasets ls`. JOB is the id that `submit` prints.
    Owners of an organization train its models.
    """


def run_training(work: Work, *, as_json: bool = False) -> None:
    """Run `work` with a client for training of the cloud that the user has logged in to."""

    async def connected(client: ApiClient) -> None:
        async with _training(client) as training:
            await work(training)

    run_with_client(connected, as_json=as_json, on_trio=True)


@asynccontextmanager
async def _training(client: ApiClient) -> AsyncIterator[TrainingClient]:
    from training.client import AsyncHttp, TrainingClient

    signed_in = login.load(os.environ)
    address = signed_in.address if ":/" in signed_in.address else f"http://{signed_in.address}"
    http = AsyncHttp(address, signed_in.connection().ca)
    try:
        yield TrainingClient(client, http)
    finally:
        await http.close()


# ---- submission


@train.command()
@click.argument("dataset")
@click.argument("model")
@click.option("--type", "kind", type=click.Choice([*TYPES]), default="single", show_default=True,
              help="One label for each picture, any number of labels, or boxes.")  # fmt: skip
@click.option(
    "--label", "labels", multiple=True, required=True, metavar="LABEL", help="A label to train on; repeat it."
)
@_VERSION
@_WAIT
@ORGANIZATION
@json_option
def submit(
    dataset: str, model: str, kind: str, labels: tuple[str, ...], version: str, wait: bool, organization: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Train the model called MODEL from DATASET, and print the id of the job.

    A submission is refused with a list of everything that the dataset lacks.
    """

    async def submitted(client: TrainingClient) -> Job:
        from training.jobs import ModelType

        owner, dataset_id = await _places(client, organization, dataset)
        return await client.submit_training_job(owner, dataset_id, model, version, ModelType[TYPES[kind]], labels)

    _submit(submitted, wait=wait, as_json=as_json)


@train.command("submit-custom")
@click.argument("dataset")
@click.argument("model")
@click.option("--script", required=True, metavar="ID", help="Registry id of the training script, namespace:name.")
@click.option("--script-version", default="latest", show_default=True, metavar="VERSION", help="Version of the script.")
@click.option("--arg", "arguments", multiple=True, metavar="KEY=VALUE", help="Argument of the script; repeat it.")
@_VERSION
@_WAIT
@ORGANIZATION
@json_option
def submit_custom(
    dataset: str, model: str, script: str, script_version: str, arguments: tuple[str, ...], version: str, wait: bool,
    organization: str, as_json: bool,
) -> None:  # fmt: skip
    """Train the model called MODEL from DATASET with a script of the registry, and print the id of the job."""
    values = dict(_pair(argument) for argument in arguments)

    async def submitted(client: TrainingClient) -> Job:
        owner, dataset_id = await _places(client, organization, dataset)
        return await client.submit_custom_training_job(
            owner, dataset_id, script, script_version, model, version, values
        )

    _submit(submitted, wait=wait, as_json=as_json)


def _submit(submitted: Callable[[TrainingClient], Awaitable[Job]], *, wait: bool, as_json: bool) -> None:
    submitted_jobs: list[str] = []

    async def work(client: TrainingClient) -> None:
        from support.text.terminal import one_line
        from training.client import SubmissionRefused

        try:
            job = await submitted(client)
        except SubmissionRefused as error:
            raise _refusal(error, as_json=as_json) from None
        submitted_jobs.append(job.id)
        click.echo(one_line({"id": job.id}) if as_json else job.id)
        if wait:
            await _watch(job, as_json=as_json)
        elif not as_json:
            click.echo(f"follow it with `machine cloud train logs -f {job.id}`", err=True)

    with _job_continues(submitted_jobs):
        run_training(work, as_json=as_json)


def _refusal(error: Any, *, as_json: bool) -> click.ClickException:
    from support.text.terminal import clean

    if as_json:
        print_json({"error": str(error), "kind": error.kind.value, "missing": list(error.missing)})
    if not error.missing:
        return click.ClickException(clean(str(error)))
    lines = [
        "the job was refused, because the dataset does not suffice:",
        *(f"  {clean(each)}" for each in error.missing),
    ]
    return click.ClickException("\n".join(lines))


def _pair(argument: str) -> tuple[str, str]:
    key, equals, value = argument.partition("=")
    if not key or not equals:
        raise click.UsageError(f"--arg {argument!r} is not KEY=VALUE")
    return key, value


async def _places(client: TrainingClient, organization: str, dataset: str) -> tuple[str, str]:
    """Return the ids of an organization and of its dataset with this id or name."""
    owner = (await organization_of(client.api, organization))["id"]
    return owner, await find_dataset(client.api, dataset, [owner])


# ---- watching


@train.command()
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the job has ended, or Ctrl-C.")
@json_option
def logs(job: str, follow: bool, as_json: bool) -> None:
    """Print what JOB has reported: log, metrics, progress, states. It is kept for 7 days after the end of the job.

    With --follow on a terminal, a progress bar is shown. A lost connection loses and repeats no line.
    """

    async def work(client: TrainingClient) -> None:
        subject = client.job(job)
        await subject.get()
        if follow:
            await _show(subject, as_json=as_json)
            return
        from training.client import Display

        after, display = 0, Display()
        while True:
            page = await client.events_page(job, after, wait=0)
            for entry in page.events:
                click.echo(f"{_json(entry)}\n" if as_json else display.feed(entry), nl=False)
            if page.last == after:
                return
            after = page.last

    with _job_continues([job]):
        run_training(work, as_json=as_json)


@train.command()
@click.argument("job")
@json_option
def wait(job: str, as_json: bool) -> None:
    """Show the log and the progress of JOB until it has ended. The exit code is 1 if it failed or was canceled."""

    async def work(client: TrainingClient) -> None:
        subject = client.job(job)
        await subject.get()
        await _watch(subject, as_json=as_json)

    with _job_continues([job]):
        run_training(work, as_json=as_json)


async def _watch(job: Job, *, as_json: bool) -> None:
    """Show a job until its end. click.ClickException if it did not complete."""
    from training.jobs import JobState

    await _show(job, as_json=as_json)
    ended = await job.get()
    if ended.state is not JobState.COMPLETED:
        raise click.ClickException(f"the job {job.id} {_outcome(ended)}")
    if not as_json:
        click.echo(
            f"{ended.model} {ended.model_version} is in the registry: see `machine cloud train report {job.id}`",
            err=True,
        )


def _outcome(job: TrainingJob) -> str:
    from support.text.terminal import clean
    from training.jobs import JobState

    return f"failed: {clean(job.error)}" if job.state is JobState.FAILED else f"was {job.state.value}"


async def _show(job: Job, *, as_json: bool) -> None:
    """Print the events of a job until it has ended."""
    from training.client import display_of, write_text

    display = display_of(sys.stdout)

    async def follow() -> None:
        async for entry in job.numbered_events():
            if as_json:
                click.echo(_json(entry))
            else:
                write_text(sys.stdout, display.feed(entry))

    try:
        await _interruptible(follow)
    finally:
        write_text(sys.stdout, display.close())


async def _interruptible(work: Callable[[], Awaitable[None]]) -> None:
    """Run `work`; after Ctrl-C, cancel it and raise KeyboardInterrupt.

    Python raises KeyboardInterrupt between any two instructions, also in a context manager that is just ending, whose
    nursery would then never be closed.
    """
    import trio

    interrupted, error = False, None
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                nonlocal interrupted
                await anext(signals)
                interrupted = True
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            try:
                await work()
            except Exception as raised:  # raised below, because the nursery would wrap it in a group
                error = raised
            nursery.cancel_scope.cancel()
    if interrupted:
        raise KeyboardInterrupt
    if error is not None:
        raise error


def _json(entry: Numbered) -> str:
    import msgspec

    from support.text.terminal import one_line

    return one_line({"number": entry.number, "time": utc(entry.time), **msgspec.to_builtins(entry.event)})


@contextmanager
def _job_continues(jobs: Sequence[str]) -> Iterator[None]:
    """Say after Ctrl-C that the job goes on, if there is one."""
    try:
        yield
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        interrupted = isinstance(error, KeyboardInterrupt) or error.subgroup(KeyboardInterrupt) is not None
        if interrupted and jobs:
            job = jobs[0]
            click.echo(
                f"\nthe job continues: follow it with `machine cloud train logs -f {job}`, or end it with "
                f"`machine cloud train cancel {job}`",
                err=True,
            )
        raise


# ---- notifications


@train.command()
@click.option("--webhook", metavar="URL", help="Notify this webhook from now on.")
@click.option("--email", metavar="ADDRESS", help="Notify this address from now on.")
@click.option(
    "--secret-file",
    type=click.File(),
    metavar="FILE",
    help="Sign the webhook with the secret in FILE.",
)
@click.option("--remove", metavar="VALUE", help="Do not notify this URL or address any more.")
@ORGANIZATION
@json_option
def notify(
    webhook: str | None, email: str | None, secret_file: TextIO | None, remove: str | None, organization: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Choose who is notified whenever a training job of the organization has ended, and list them.

    A webhook gets a POST request with the job as JSON. The list shows whether the last message arrived.
    """
    if secret_file is not None and webhook is None:
        raise click.UsageError("--secret-file needs --webhook: it signs webhooks")
    secret = secret_file.read().strip() if secret_file is not None else ""

    async def work(client: TrainingClient) -> None:
        from rpc.api import TRAINING

        owner = (await organization_of(client.api, organization))["id"]
        for kind, value in (("webhook", webhook), ("email", email)):
            if value is not None:
                fields = {"type": kind, "value": value, "secret": secret if kind == "webhook" else ""}
                await client.call(TRAINING, "add_notification", organization_id=owner, **fields)
        targets = await client.call(TRAINING, "list_notifications", organization_id=owner)
        if remove is not None:
            matching = [each for each in targets if each["value"] == remove]
            if not matching:
                raise click.ClickException(f"{remove} is not notified: `machine cloud train notify` lists who is")
            for each in matching:
                fields = {"type": each["type"], "value": remove}
                await client.call(TRAINING, "remove_notification", organization_id=owner, **fields)
            targets = [each for each in targets if each["value"] != remove]
        _show_notifications(targets, as_json=as_json)

    run_training(work, as_json=as_json)


def _show_notifications(targets: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    from support.text.terminal import table

    if as_json:
        print_json(list(targets))
    elif not targets:
        click.echo("no notifications")
    else:
        rows = [[each["type"], each["value"], each["state"] or "none yet", each["error"]] for each in targets]
        click.echo("\n".join(table(["TYPE", "TO", "LAST MESSAGE", "ERROR"], rows)))


# ---- jobs


@train.command("ls")
@click.option("--status", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Number of jobs.")
@ORGANIZATION
@json_option
@_QUIET
def list_command(status: str | None, count: int, organization: str, as_json: bool, quiet: bool) -> None:
    """List the newest training jobs of the organization."""

    async def work(client: TrainingClient) -> None:
        from support.text.terminal import table

        owner = (await organization_of(client.api, organization))["id"]
        jobs = await _newest(client, owner, status, count)
        if as_json:
            print_json([_fields(job) for job in jobs])
        elif quiet:
            click.echo("".join(f"{job.id}\n" for job in jobs), nl=False)
        else:
            rows = [
                [job.model_name, job.model_version, job.state.value, local(job.created, seconds=False), job.id]
                for job in jobs
            ]
            click.echo("\n".join(table(["MODEL", "VERSION", "STATE", "SUBMITTED", "ID"], rows)))

    run_training(work, as_json=as_json)


async def _newest(client: TrainingClient, owner: str, status: str | None, count: int) -> list[TrainingJob]:
    from training.jobs import JobState

    jobs: list[TrainingJob] = []
    before = 0
    while len(jobs) < count:
        state = JobState(status) if status else None
        page, before = await client.list_training_jobs_page(owner, state, before, min(count - len(jobs), 200))
        jobs += page
        if not before:
            break
    return jobs


@train.command()
@click.argument("job")
@json_option
def status(job: str, as_json: bool) -> None:
    """Show JOB: its state, its model, and the reason of a failure."""

    async def work(client: TrainingClient) -> None:
        from support.text.terminal import clean

        fields = _fields(await client.get_training_job(job))
        if as_json:
            print_json(fields)
            return
        for name, value in fields.items():
            if value:
                text = ", ".join(value) if isinstance(value, list) else str(value)
                click.echo(clean(f"{name.replace('_', ' '):<16} {text}"))

    run_training(work, as_json=as_json)


def _fields(job: TrainingJob) -> dict[str, Any]:
    """Return a job as --json prints it."""
    return {
        "id": job.id,
        "state": job.state.value,
        "error": job.error,
        "model_name": job.model_name,
        "model_version": job.model_version,
        "model_type": job.model_type.name if not job.script else "",
        "model": job.model,
        "labels": list(job.tags),
        "dataset_id": job.dataset_id,
        "organization_id": job.organization_id,
        "script": job.script,
        "script_version": job.script_version,
        "arguments": dict(job.arguments),
        "created": utc(job.created),
        "started": utc(job.started),
        "ended": utc(job.ended),
    }


@train.command()
@click.argument("job")
def cancel(job: str) -> None:
    """Cancel JOB. A running one gets some seconds to write a checkpoint, and is `canceling` meanwhile."""

    async def work(client: TrainingClient) -> None:
        await client.cancel_training_job(job)
        click.echo(f"the job is {(await client.get_training_job(job)).state.value}")

    run_training(work)


@train.command()
@click.argument("job")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(job: str, yes: bool) -> None:
    """Delete JOB, which must have ended, with its log. Its model stays in the registry."""
    if not yes:
        click.confirm(f"Delete the job {job} with its log? Its model stays.", abort=True)

    async def work(client: TrainingClient) -> None:
        await client.delete_completed_training_job(job)
        click.echo("deleted")

    run_training(work)
