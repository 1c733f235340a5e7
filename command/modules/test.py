"""`machine module test`: finds problems of a module before it is published."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import trio

from command.connection import ROBOT
from command.interrupts import run_until_interrupted
from command.machine import facts
from command.modules.run import document_of, server
from rpc.api import ApiClient
from rpc.client import Channel
from runtime.sdk import Meta, check_offers, read_folder
from support.text import terminal

READY_LIMIT: Final = 60.0  # seconds until every resource must have been tried; less than a module's start limit
PATIENCE: Final = 3.0  # seconds until an unhealthy resource counts as a problem
SETTLE: Final = 0.1  # seconds between requests for the status: the published API has no stream of states
NO_TESTS: Final = 5  # pytest's exit code if there are no tests
_SHOWN: Final = 20  # lines of the machine's log that are shown with problems


@dataclass
class TestVerdict:
    """The checks that were done, and the problems that they found."""

    looked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    resources: list[facts.Resource] = field(default_factory=list)
    log: str = ""


def main_test(folder: Path, config: Path | None, hardware: str, *, own_tests: bool, as_json: bool) -> int:
    """Test the module in `folder`. Return 1 if there is a problem. Raises MachineError if it cannot be started."""
    meta, warnings = read_folder(folder)
    verdict = TestVerdict(looked=["meta.json"])
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if own_tests and any(folder.glob("**/test_*.py")):
        _run_pytest(folder, verdict, quiet=as_json)
    run_until_interrupted(partial(_start_and_check, folder, meta, config, hardware, verdict))
    _show(verdict, as_json=as_json)
    return int(bool(verdict.problems))


def _run_pytest(folder: Path, verdict: TestVerdict, *, quiet: bool) -> None:
    verdict.looked.append("the module's own tests")
    if any(importlib.util.find_spec(name) is None for name in ("pytest", "pytest_trio")):
        verdict.problems.append(
            'the own tests of the module need pytest: pip install "machine-runtime[rig]", or give --no-pytest'
        )
        return
    output = subprocess.DEVNULL if quiet else None
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=folder, stdout=output, stderr=output, check=False)
    if done.returncode not in (0, NO_TESTS):
        verdict.problems.append(f"the module's own tests failed: pytest exited with status {done.returncode}")


async def _start_and_check(folder: Path, meta: Meta, config: Path | None, hardware: str, verdict: TestVerdict) -> None:
    """Start the module on a machine, and check its models and the states of the resources."""
    verdict.looked.append(f"a start on a machine with the hardware {hardware}")
    document = document_of(folder, meta, config, port=0, hardware=hardware)
    with tempfile.TemporaryFile() as log:
        async with server(document, hardware, output=log, environment=os.environ) as running:
            with trio.move_on_after(READY_LIMIT) as limit:
                if await running.wait("\n"):
                    async with Channel(running.address) as channel:
                        await _check_on_machine(ApiClient(channel), meta, verdict)
                else:
                    verdict.problems.append("machine-server did not start")
        if limit.cancelled_caught:
            verdict.problems.append(f"not every resource was started within {READY_LIMIT:g} s")
        log.seek(0)
        verdict.log = log.read().decode(errors="replace")


async def _check_on_machine(client: ApiClient, meta: Meta, verdict: TestVerdict) -> None:
    """Wait until everything is ready, the module has failed, or a resource stays unhealthy; record the problems."""
    tried: float | None = None  # time since when all resources are either ready or unhealthy
    while True:
        status = await client.call(ROBOT, "", "get_machine_status")
        verdict.resources = list(facts.machine_of(status).resources)
        module = next(module_status for module_status in status["modules"] if module_status["module_name"] == meta.name)
        state = str(module["state"]).lower().removeprefix("state_")
        states = {resource.state for resource in verdict.resources} | {state}
        if states == {"ready"}:
            break
        if state == "unhealthy":
            verdict.problems.append(f"the module has failed: {module['error']}")
            return
        if not states <= {"ready", "unhealthy"}:
            tried = None
        elif tried is None:
            tried = trio.current_time()
        elif trio.current_time() - tried > PATIENCE:
            break
        await trio.sleep(SETTLE)
    models = await client.call(ROBOT, "", "get_models_from_modules")
    offers = [(model["api"], model["model"]) for model in models if model["module_name"] == meta.name]
    verdict.problems += [f"meta.json: {error}" for error in check_offers(meta, offers)]
    verdict.problems += [
        f"{resource.full} is {resource.state}{f': {resource.reason}' if resource.reason else ''}"
        for resource in verdict.resources
        if resource.state != "ready"
    ]


def _show(verdict: TestVerdict, *, as_json: bool) -> None:
    if as_json:
        states: list[dict[str, Any]] = [
            {"name": resource.full, "state": resource.state, "reason": resource.reason}
            for resource in verdict.resources
        ]
        click.echo(json.dumps({"looked": verdict.looked, "problems": verdict.problems, "resources": states}, indent=2))
        return
    rows = [(resource.full, resource.state, resource.reason) for resource in verdict.resources]
    for line in terminal.table(("RESOURCE", "STATE", "REASON"), rows) if rows else ():
        click.echo(line)
    if verdict.problems and verdict.log:
        click.echo("\nlast lines of the machine's log:")
        for line in [line for line in verdict.log.splitlines() if "\tINFO\t" not in line][-_SHOWN:]:
            click.echo(f"  {line}")
    click.echo()
    for problem in verdict.problems:
        click.echo(f"problem: {problem}")
    outcome = f"{len(verdict.problems)} problems" if verdict.problems else "no problems"
    click.echo(f"checked {', '.join(verdict.looked)}: {outcome}")
