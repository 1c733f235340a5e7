"""`machine status` and `machine resources`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from command.connection import ROBOT, Connection
from command.machine import facts
from command.output import print_json
from support.text import terminal

if TYPE_CHECKING:
    from rpc.api import ApiClient


async def status(client: ApiClient, connection: Connection) -> None:
    """Print state, version, configuration, resources that are not ready, jobs and modules."""
    reply, metadata = await client.call_with_metadata(ROBOT, "", "get_machine_status")
    extra_facts = facts.more_of(metadata)
    machine = facts.machine_of(reply, extra_facts)
    jobs = facts.jobs_of(reply, extra_facts)
    extra_facts.pop("waiting", None)
    extra_facts.pop("paths", None)
    version = await client.call(ROBOT, "", "get_version")
    now = datetime.now(UTC)
    if connection.json:
        print_json({"version": version["version"], **machine_json(machine), **extra_facts, "jobs": jobs_json(jobs)})
        return
    state = terminal.paint(machine.state) if connection.colour else machine.state
    click.echo(f"machine-server {version['version']} at {connection.address} is {state}")
    revision = machine.revision[:12] or "none"
    age = f", active for {terminal.since(machine.updated, now)}" if machine.updated else ""
    click.echo(f"configuration {revision}{age}")
    for line in facts.standing(extra_facts):
        click.echo(line)
    click.echo(f"resources: {facts.counts(machine.resources)}")
    rows = [row(resource, now) for resource in machine.resources if resource.state != "ready"]
    if rows:
        click.echo("")
        lines(HEAD, rows, connection)
    if jobs:
        click.echo("")
        lines(JOBS, [job_row(job, now) for job in jobs], connection)
    if machine.modules:
        click.echo("")
        lines(MODULES, [module_row(module, now) for module in machine.modules], connection)


async def machine_state(client: ApiClient) -> facts.Machine:
    """Return the current state of the machine."""
    reply, metadata = await client.call_with_metadata(ROBOT, "", "get_machine_status")
    return facts.machine_of(reply, facts.more_of(metadata))


async def resources(client: ApiClient, connection: Connection) -> None:
    """Print all configured resources with their states."""
    machine = await machine_state(client)
    if connection.json:
        print_json(machine_json(machine)["resources"])
    elif machine.resources:
        now = datetime.now(UTC)
        lines(HEAD, [row(resource, now) for resource in machine.resources], connection)
    else:
        click.echo("no resources are configured")


HEAD = ("NAME", "API", "STATE", "SINCE", "REASON")
JOBS = ("JOB", "NEXT", "SUCCEEDED", "FAILED")
MODULES = ("MODULE", "STATE", "SINCE", "FAILURES", "REASON")


def row(resource: facts.Resource, now: datetime) -> tuple[str, ...]:
    """Return a row for a resource, with the columns HEAD."""
    return resource.name, resource.api, resource.state, terminal.since(resource.since, now), resource.reason


def module_row(module: facts.ModuleFacts, now: datetime) -> tuple[str, ...]:
    """Return a row for a module, with the columns MODULES."""
    return module.name, module.state, terminal.since(module.since, now), str(module.failures), module.reason


def job_row(job: facts.Job, now: datetime) -> tuple[str, ...]:
    """Return a row for a job, with the columns JOBS."""
    next_run = "" if job.next_run is None else f"in {terminal.since(now, max(now, job.next_run))}"
    return job.name, next_run, terminal.since(job.succeeded, now), terminal.since(job.failed, now)


def lines(head: tuple[str, ...], rows: list[tuple[str, ...]], connection: Connection) -> None:
    """Print a table."""
    for line in terminal.table(head, rows, colour=connection.colour):
        click.echo(line)


def jobs_json(jobs: list[facts.Job]) -> list[dict[str, Any]]:
    """Return jobs in the form for JSON."""
    return [
        {"name": job.name, "next_run": job.next_run, "last_success": job.succeeded, "last_failure": job.failed}
        for job in jobs
    ]


def machine_json(machine: facts.Machine) -> dict[str, Any]:
    """Return a machine in the form for JSON."""
    return {
        "state": machine.state,
        "revision": machine.revision,
        "updated": machine.updated,
        "resources": [
            {
                "name": resource.full,
                "api": resource.api,
                "state": resource.state,
                "since": resource.since,
                "revision": resource.revision,
                "reason": resource.reason,
            }
            for resource in machine.resources
        ],
        "modules": [
            {
                "name": module.name,
                "state": module.state,
                "since": module.since,
                "failures": module.failures,
                "reason": module.reason,
            }
            for module in machine.modules
        ],
    }
