"""The unmodified Python SDK: each method of its clients with its answer, and the calls that reached the cloud."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from pathlib import Path
from typing import Final

import pytest
import trio
from grpclib import GRPCError, Status
from viam.app.app_client import AppClient
from viam.app.data_client import DataClient
from viam.app.ml_training_client import MLTrainingClient

from rpc.api import table
from rpc.api.methods import methods_of as rpcs_of
from tests.e2e.cloud import sdk_walk_app as walk
from tests.e2e.cloud import sdk_walk_data as walk_data
from tests.e2e.cloud import sdk_walk_keys as walk_keys
from tests.e2e.cloud import sdk_walk_training as walk_training
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.sdk_calls import FILE, answered, calls, is_served, refused
from tests.e2e.cloud.sdk_client import signed_in
from tests.e2e.cloud.sdk_others import others
from tests.e2e.cloud.sdk_seen import Seen, methods_of
from tests.e2e.cloud.sdk_table import CALLS, DAILY

LIMIT: Final = 120  # seconds for the whole walk, which takes a few seconds
UNIMPLEMENTED: Final = 12
STUBS: Final = {
    "_app_client": "viam.app.v1.AppService",
    "_data_client": "viam.app.data.v1.DataService",
    "_dataset_client": "viam.app.dataset.v1.DatasetService",
    "_data_sync_client": "viam.app.datasync.v1.DataSyncService",
    "_data_pipelines_client": "viam.app.datapipelines.v1.DataPipelinesService",
    "_ml_training_client": "viam.app.mltraining.v1.MLTrainingService",
}
SILENT: Final = {"create_filter", "delete_tabular_data_by_filter"}  # methods of the SDK that make no call


def served() -> set[str]:
    """Return the calls of the table that this cloud serves."""
    return {f"{service}/{row[0]}" for service, result in CALLS.items() for row in result if is_served(service, row[0])}


def rows(column: int) -> dict[str, list[str]]:
    """Return the methods of an SDK that make each call."""
    return {f"{service}/{row[0]}": row[column].split() for service, result in CALLS.items() for row in result}


def test_the_table_has_every_published_call() -> None:
    for service, listed in CALLS.items():
        if service in table.SERVICES:
            published = {item.path.rpartition("/")[2] for item in rpcs_of(table.SERVICES[service]).values()}
            assert published == {row[0] for row in listed}


def test_calls_for_daily_use_are_served() -> None:
    assert {f"viam.app.v1.AppService/{call}" for call in DAILY} <= served()


@pytest.mark.parametrize("client", [AppClient, DataClient, MLTrainingClient])
def test_the_table_lists_the_calls_of_every_python_sdk_method(client: type) -> None:
    by_method: dict[str, set[str]] = {}
    for call, methods in rows(1).items():
        for method in methods:
            by_method.setdefault(method, set()).add(call)
    for method in methods_of(client) - SILENT:
        source = inspect.getsource(getattr(client, method))
        for helper in re.findall(r"self\.(_[a-z_]+)\(", source):
            source += inspect.getsource(getattr(client, helper))
        created = {f"{STUBS[stub]}/{call}" for stub, call in re.findall(r"self\.(_\w+_client)\.([A-Z]\w+)", source)}
        assert by_method[method] == created, method


async def walked(running: CloudProcess, second: str, folder: Path) -> tuple[Seen, Seen, Seen]:
    """Call everything that the Python SDK can request from a cloud, on the SDK's own loop."""
    app_seen, data_seen, training_seen = Seen(), Seen(), Seen()
    at = walk.Place(running.facts["organization"], running.facts["location"], second, running.key[0], folder)
    refusing = {call for call in rows(1) if call not in served()}
    client = await signed_in(running.address, *running.key)
    try:
        app, data = client.app_client, client.data_client
        await walk.organization(app, app_seen, at)
        await walk.people(app, app_seen, at)
        await walk.locations(app, app_seen, at)
        robot, part = await walk.machines(app, app_seen, at)
        await walk.configuration(app, app_seen, at, part)
        await walk.logs(app, app_seen, at, part)
        await walk.fragments(app, app_seen, at, robot, part)
        await walk.overview(app, at, robot, part)
        await walk_keys.keys(app, app_seen, at, running.address, robot)
        await walk_keys.registry(app, app_seen, at)
        await walk_keys.packages(app, at)
        await walk_keys.unbuilt(app, app_seen, walk_keys.unbuilt_arguments(app, at), refusing)
        await walk_data.readings(data, data_seen, at, part)
        every = await walk_data.files(data, data_seen, at, part)
        await walk_data.labels(data, data_seen, part, every)
        await walk_data.datasets(data, data_seen, at, every)
        await walk_data.deletion(data, data_seen, every)
        await walk_training.train(client, training_seen, at, part)
        await walk_keys.unbuilt(data, data_seen, walk_data.unbuilt_arguments(at, part), refusing)
        await walk_keys.end(app, app_seen, at, robot)
    finally:
        client.close()
    return app_seen, data_seen, training_seen


async def mistaken(running: CloudProcess) -> None:
    """Log in with a wrong key."""
    async with asyncio.timeout(LIMIT):
        await signed_in(running.address, running.key[0], "wrong")


async def test_every_method_of_the_python_sdk(tmp_path: Path) -> None:
    noted = tmp_path / "calls"
    environ, options = {FILE: str(noted)}, (f"--training-python={sys.executable}",)
    module = "tests.e2e.cloud.sdk_recorded"
    async with cloud(tmp_path / "cloud", *options, module=module, environ=environ) as running:
        second = await others(running, tmp_path / "cloud")

        async def main() -> tuple[Seen, Seen, Seen]:
            async with asyncio.timeout(LIMIT):
                return await walked(running, second, tmp_path)

        with pytest.raises(GRPCError) as caught:
            await trio.to_thread.run_sync(lambda: asyncio.run(mistaken(running)))
        assert caught.value.status is Status.UNAUTHENTICATED
        app_seen, data_seen, training_seen = await trio.to_thread.run_sync(lambda: asyncio.run(main()))
        await running.stop()
    assert methods_of(AppClient) - app_seen.methods == set()
    assert methods_of(DataClient) - data_seen.methods == set()
    assert methods_of(MLTrainingClient) - training_seen.methods == set()
    created = calls(noted)
    assert served() - answered(created) == set()
    reachable = {call for call, methods in rows(1).items() if methods}
    assert reachable - served() - refused(created, UNIMPLEMENTED) == set()
