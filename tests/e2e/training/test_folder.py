"""Two clouds that are given one folder for training jobs: the second one does not start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from cloud.commands.options import Options, RayOptions
from cloud.server.app import App, run
from cloud.server.training_folder import folder_of
from nursery_graph import State

LIMIT = 60.0
RAY = RayOptions(address="ray://127.0.0.1:1", token="a-token")  # a cluster that is not available


async def started(options: Options, capsys: pytest.CaptureFixture[str], gone: Path | None = None) -> str:
    """Start a cloud, and stop it when it runs jobs and `gone` is removed; return its error output."""
    app = App(options)

    async def stop() -> None:
        async for snapshot in app.graph.changes():
            if "training" in snapshot.nodes and snapshot.nodes["training"].state is State.READY:
                while gone is not None and await trio.Path(gone).exists():  # noqa: ASYNC110 - folders have no event
                    await trio.sleep(0.01)
                app.graph.stop("the test is over")
                return

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            await run(app)
            nursery.cancel_scope.cancel()
    return capsys.readouterr().err


@pytest.mark.parametrize("ray", [None, RAY], ids=["local", "ray"])
async def test_the_second_cloud_does_not_start(
    tmp_path: Path, ray: RayOptions | None, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = Options(data=tmp_path / "ours", address="localhost:0", training_folder=tmp_path / "shared", ray=ray)
    other = replace(ours, data=tmp_path / "other")
    assert await started(ours, capsys) == ""
    job = folder_of(ours) / "job"
    job.mkdir()
    error = await started(other, capsys)
    assert f"machine-cloud: the folder of training jobs {folder_of(ours)} belongs to the cloud " in error
    assert "set --training-folder to a folder that no other cloud uses" in error
    assert job.exists()
    assert await started(ours, capsys, gone=job) == ""  # no job of this cloud
    assert await started(replace(other, training_jobs=0), capsys) == ""  # runs no jobs, and uses no folder
