"""`machine status` and `machine resources`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from command.connection import ROBOT, Connection
from command.machine import facts
from runtime.engine.views import tables

if TYPE_CHECKING:
    from rpc.api.client import ApiClient


async def status(client: ApiClient, connection: Connection) -> None:
    """Print state, version, configuration, resources that are not ready, jobs and modules."""
    reply, metadata = await client.call_with_metadata(ROBOT, "", "get_machine_status")
    more = facts.more_of(metadata)
    machine = facts.machine_of(reply, more)
    jobs = facts.jobs_of(reply, more)
    more.pop("waiting", None)
    version = await client.call(ROBOT, "", "get_version")
    now = datetime.now(UTC)
    if connection.json:
        click.echo(
            tables.one_line({"version": version["version"], **machine_json(machine), **more, "jobs": jobs_json(jobs)})
        )
        return
    state = tables.paint(machine.state) if connection.colour else machine.state
    click.echo(f"machine-server {version['version']} at {connection.address} is {state}")
    revision = machine.revision[:12] or "none"
    age = f", in force for {tables.since(machine.updated, now)}" if machine.updated else ""
    click.echo(f"configuration {revision}{age}")
    for line in facts.standing(more):
        click.echo(line)
    click.echo(f"resources: {facts.counts(machine.resources)}")
    rows = [row(one, now) for one in machine.resources if one.state != "ready"]
    if rows:
        click.echo("")
        lines(HEAD, rows, connection)
    if jobs:
        click.echo("")
        lines(JOBS, [job_row(one, now) for one in jobs], connection)
    if machine.modules:
        click.echo("")
        lines(MODULES, [module_row(one, now) for one in machine.modules], connection)


async def asked(client: ApiClient) -> facts.Machine:
    """Return the current state of the machine."""
    reply, metadata = await client.call_with_metadata(ROBOT, "", "get_machine_status")
    return facts.machine_of(reply, facts.more_of(metadata))


async def resources(client: ApiClient, connection: Connection) -> None:
    """Print all configured resources with their states."""
    machine = await asked(client)
    if connection.json:
        click.echo(tables.one_line(machine_json(machine)["resources"]))
    elif machine.resources:
        now = datetime.now(UTC)
        lines(HEAD, [row(one, now) for one in machine.resources], connection)
    else:
        click.echo("no resources are configured")


HEAD = ("NAME", "API", "STATE", "SINCE", "REASON")
JOBS = ("JOB", "NEXT", "SUCCEEDED", "FAILED")
MODULES = ("MODULE", "STATE", "SINCE", "FAILURES", "REASON")


def row(one: facts.Resource, now: datetime) -> tuple[str, ...]:
    """Return a row for a resource, with the columns HEAD."""
    return one.name, one.api, one.state, tables.since(one.since, now), one.reason


def module_row(one: facts.Module, now: datetime) -> tuple[str, ...]:
    """Return a row for a module, with the columns MODULES."""
    return one.name, one.state, tables.since(one.since, now), str(one.failures), one.reason


def job_row(one: facts.Job, now: datetime) -> tuple[str, ...]:
    """Return a row for a job, with the columns JOBS."""
    due = "" if one.next_run is None else f"in {tables.since(now, max(now, one.next_run))}"
    return one.name, due, tables.since(one.succeeded, now), tables.since(one.failed, now)


def lines(head: tuple[str, ...], rows: list[tuple[str, ...]], connection: Connection) -> None:
    """Print a table."""
    for line in tables.table(head, rows, colour=connection.colour):
        click.echo(line)


def jobs_json(jobs: list[facts.Job]) -> list[dict[str, Any]]:
    """Return jobs in the form for JSON."""
    return [
        {"name": one.name, "next_run": one.next_run, "last_success": one.succeeded, "last_failure": one.failed}
        for one in jobs
    ]


def machine_json(machine: facts.Machine) -> dict[str, Any]:
    """Return a machine in the form for JSON."""
    return {
        "state": machine.state,
        "revision": machine.revision,
        "updated": machine.updated,
        "resources": [
            {
                "name": one.full,
                "api": one.api,
                "state": one.state,
                "since": one.since,
                "revision": one.revision,
                "reason": one.reason,
            }
            for one in machine.resources
        ],
        "modules": [
            {
                "name": one.name,
                "state": one.state,
                "since": one.since,
                "failures": one.failures,
                "reason": one.reason,
            }
            for one in machine.modules
        ],
    }
