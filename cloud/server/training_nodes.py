"""Nodes of training: the engine, with what it is able to do, and the runner of the queue."""

from __future__ import annotations

import importlib.util
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from cloud.commands.options import Options
from cloud.domain.training import jobs
from cloud.domain.training.abilities import NO_SCRIPTS, Abilities
from cloud.server.training_folder import claim, folder_of
from cloud.server.training_network import network
from cloud.services.common.base import Cloud
from cloud.services.training.runner import Runner, RunnerSettings, folders, stale
from cloud.store.sql import Store
from cloud.values.names import new_id
from nursery_graph import Node, Restart
from schema import MachineError
from support import Worker
from training.engine import MIB, Engine, Groups, LocalEngine, inspected_interpreter, open_groups
from training.environments import Cache, environments

NAME: Final = "training engine"
_LIBRARIES: Final = {"onnxruntime": "onnxruntime", "numpy": "numpy", "PIL": "pillow"}
"""Modules that trainers import, and the packages that contain them."""
_NOT_ON_A_CLUSTER: Final = (
    "this cloud runs no training scripts on its Ray cluster, which does not isolate them: start machine-cloud with "
    "--ray-scripts if all its organizations may run programs there"
)
_log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.training")


@dataclass(frozen=True, slots=True)
class Training:
    """The engine of a process and its abilities. Without an engine, jobs are not run here."""

    engine: Engine | None = None
    abilities: Abilities = field(default_factory=Abilities)


def nodes(options: Options, restart: Restart) -> list[Node]:
    """Return the nodes; the cloud requires the first one, because it tells clients what cannot be trained."""
    return [
        # "files" gives the database the id of the cloud
        Node(NAME, partial(_engine, options), requires={"database", "files"}, restart=restart),
        Node("training", partial(_runner, options), requires={"cloud", NAME}, restart=restart),
    ]


async def _engine(options: Options, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[Training]) -> None:
    if options.ray is None or not options.training_jobs:
        task_status.started(await able(options, deps["database"]))
        await trio.sleep_forever()
    from training.engine import Cluster, RayEngine, parse_address, parse_placement, ray_jobs

    await claim(options, deps["database"])
    ray = options.ray
    cluster = Cluster(ray.python, parse_placement(ray.resources), ray.scripts)
    async with ray_jobs(parse_address(ray.address), ray.token) as calls:
        try:
            _log.info("training jobs run on a Ray cluster", address=calls.url, ray=await calls.version())
        except MachineError as error:  # jobs wait for it
            _log.warning("the Ray cluster for training jobs is not available now", reason=str(error))
        abilities = Abilities("", "" if ray.scripts else _NOT_ON_A_CLUSTER, f"{ray.python} on a Ray cluster")
        task_status.started(Training(RayEngine(calls, cluster), abilities))
        await trio.sleep_forever()


async def able(options: Options, store: Store) -> Training:
    """Return the engine for these options, after trying what it can do on this computer.

    MachineError if the folder of jobs belongs to another cloud or cannot be used.
    """
    if not options.training_jobs:
        return Training()
    missing = _missing()
    lacking = _lacking(missing)
    if missing:
        _log.warning("no models can be trained", reason=lacking, command=_command(missing))
    if missing and not options.training_python:
        return Training(abilities=Abilities(lacking))
    await claim(options, store)
    groups = _groups()
    isolated = LocalEngine(python=options.training_python, groups=groups)
    obstacle = await isolated.probe(folder_of(options) / f".{new_id()}")  # a replica may use the same folder
    engine = LocalEngine(isolate=not obstacle, python=options.training_python, groups=groups)
    if obstacle:
        _log.warning("training programs are confined by limits only", reason=obstacle)
    return Training(engine, Abilities(lacking, *await _scripts(options, obstacle)))


def _groups() -> Groups | None:
    """Return control groups for jobs; None, with a remark in the log, if there can be none here."""
    try:
        return open_groups()
    except OSError as error:
        reason = error.strerror if error.filename is None else str(error)
        _log.info("the memory of training jobs is measured, not limited by a control group", reason=reason)
        return None


def _missing() -> list[str]:
    return [package for name, package in _LIBRARIES.items() if importlib.util.find_spec(name) is None]


def _lacking(missing: Sequence[str]) -> str:
    """Return why no model can be trained here, for clients. They may be strangers, so it names no path."""
    if not missing:
        return ""
    return (
        f"this cloud cannot train: {', '.join(missing)} is not installed; in its environment, run "
        f"`python -m pip install {' '.join(missing)}`, and start machine-cloud again"
    )


def _command(missing: Sequence[str]) -> str:
    """Return the command that installs packages where this program runs."""
    return shlex.join([sys.executable, "-m", "pip", "install", *missing])


async def _scripts(options: Options, obstacle: str) -> tuple[str, str]:
    """Return why scripts cannot be run, and their environment."""
    if not options.training_python:
        return NO_SCRIPTS, ""
    if obstacle:
        return f"this cloud runs no training scripts, because it cannot isolate them: {obstacle}", ""
    try:
        interpreter = await inspected_interpreter(options.training_python)
    except MachineError as error:
        return str(error), ""
    return "", f"{Path(interpreter.program).name} on {platform.machine()}"


async def _runner(options: Options, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    cloud: Cloud = deps["cloud"]
    training: Training = deps[NAME]
    if training.engine is None:
        task_status.started()
        await trio.sleep_forever()
    scripts = environments.EnvironmentSettings(
        options.data / "environments",
        options.training_python,
        options.training_indexes,
        options.training_netrc,
        environments.uv_program(),
        replace(environments.LIMITS, disk=options.training_environments_mib * MIB),
    )
    if scripts.indexes and not scripts.uv:
        _log.warning("requirements of training scripts are not installed: install machine-runtime[scripts]")
    here = options.ray is None  # nodes of a cluster have the interpreter and the network that they have
    settings = RunnerSettings(
        folder_of(options),
        options.training_jobs,
        options.training_backbone,
        network(cloud) if here else None,
        environments.Environments(training.engine, scripts) if here else None,
    )
    worker = Worker("folders of training jobs")
    async with worker.opened():
        names = await worker.run(partial(folders, settings.folder))
        kept = await cloud.store.read(jobs.unfinished)
        await worker.run(Cache(scripts.folder).clean)
    runner = Runner(cloud, training.engine, settings)
    runner.remove(stale(settings.folder, names, kept))
    await runner.run(task_status=task_status)
