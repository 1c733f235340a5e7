"""The client for training and `machine cloud train`, against a real cloud that runs training scripts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from PIL import Image
from standardwebhooks.webhooks import Webhook

import training
from schema.errors import MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.relay import relay
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.triggers.receiver import receiver
from training import JobState, Log, Progress, Status
from training.client.records import Numbered

SCRIPT = Path(__file__).with_name("script.py")
LIMIT = 90.0  # seconds for a job on a busy computer
MODEL = b"model"


@dataclass
class World:
    running: CloudProcess
    terminal: Terminal
    organization: str
    dataset: str
    folder: Path
    options: tuple[str, ...]

    @property
    def login(self) -> dict[str, str]:
        key_id, key = self.running.key
        return {"address": f"http://{self.running.address}", "key_id": key_id, "key": key}

    @property
    def script(self) -> str:
        return f"{self.organization}:script"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A cloud with a dataset of three pictures, of which two have a label, and a script."""
    weights = tmp_path / "backbone.onnx"  # no job here gets as far as reading it
    weights.write_bytes(b"weights")
    options = (
        f"--training-python={sys.executable}",
        f"--training-backbone={weights}",
        "--training-jobs=2",
        "--webhook-allow=127.0.0.1",
    )
    async with cloud(tmp_path / "cloud", *options) as running:
        terminal = Terminal(running, tmp_path / "home")
        key_id, key = running.key
        await terminal("login", f"http://{running.address}", "--key-id", key_id, MACHINE_CLOUD_KEY=key)
        await terminal("new", "rover", "--output", str(tmp_path / "rover.json"))
        dataset = (await terminal("datasets", "create", "parts-pictures")).strip()
        for number, tag in enumerate(("ok", "ok", "")):
            path = tmp_path / f"{number}.png"
            Image.new("RGB", (16, 16), (number, 0, 0)).save(path)
            labels = ["--tag", tag] if tag else []
            await terminal("data", "upload", "rover", str(path), *labels, "--dataset", dataset)
        archive = tmp_path / "script.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(SCRIPT, "model/training.py")
            tar.addfile(tarfile.TarInfo("setup.py"))
        await terminal("packages", "upload", "script", str(archive), "--version", "1", "--type", "ml_training")
        yield World(running, terminal, running.facts["organization"], dataset, tmp_path, options)


# ---- the client


async def on_a_loop(world: World, folder: Path) -> list[Any]:
    """Train, follow and download. Runs on Trio and on asyncio."""
    async with training.connect(**world.login) as client:
        job = await client.submit_custom_training_job(world.organization, world.dataset, world.script, "1", "parts")
        events = [event async for event in job.events()]
        files = await (await job.wait()).download(folder)
        assert [path.read_bytes() for path in files] == [MODEL]
        assert [each.id for each in await client.list_training_jobs(world.organization)] == [job.id]
        record = await client.get_training_job(job.id)
        assert (record.state, record.script, record.model) == (
            JobState.COMPLETED,
            world.script,
            f"{world.organization}/parts",
        )
        assert "training" in [message for _, _, message in await client.get_training_job_logs(job.id)]
        await job.delete()
        assert await client.list_training_jobs(world.organization) == []
    return events


def blocking(world: World, folder: Path) -> list[Any]:
    with training.connect_blocking(**world.login) as client:
        job = client.submit_custom_training_job(world.organization, world.dataset, world.script, "1", "parts")
        events = [*job.events()]
        files = job.wait().download(folder)
        assert [path.read_bytes() for path in files] == [MODEL]
        job.delete()
        assert client.list_training_jobs(world.organization) == []
    return events


@pytest.mark.parametrize("kind", ["trio", "asyncio", "blocking"])
async def test_a_job_from_submission_to_model(world: World, kind: str) -> None:
    folder = world.folder / "model"
    with trio.fail_after(LIMIT):
        if kind == "trio":
            events = await on_a_loop(world, folder)
        elif kind == "asyncio":
            events = await trio.to_thread.run_sync(lambda: asyncio.run(on_a_loop(world, folder)))
        else:
            events = await trio.to_thread.run_sync(blocking, world, folder)
    states = [event.state for event in events if isinstance(event, Status)]
    assert states == [JobState.PENDING, JobState.IN_PROGRESS, JobState.COMPLETED]
    assert Log("training") in events
    assert Progress(1, 1) in events


async def test_errors_have_types(world: World) -> None:
    with trio.fail_after(LIMIT):
        async with training.connect(**world.login) as client:
            with pytest.raises(training.SubmissionRefused) as refused:
                await client.submit_training_job(world.organization, world.dataset, "m", tags=["ok", "bad"])
            assert refused.value.missing == (
                "2 of 3 pictures are labelled, 1 more needed",
                "the label 'ok' has 2 pictures, 8 more needed",
                "the label 'bad' has 0 pictures, 10 more needed",
            )
            fail = await client.submit_custom_training_job(
                world.organization, world.dataset, world.script, "1", "parts", "1", {"do": "fail"}
            )
            with pytest.raises(training.TrainingFailed) as failed:
                await fail.wait()
            assert "no idea how" in failed.value.lines
            hang = await client.submit_custom_training_job(
                world.organization, world.dataset, world.script, "1", "parts", "2", {"do": "hang"}
            )
            async for event in hang.events():
                if event == Log("hanging"):
                    await hang.cancel()
            with pytest.raises(training.TrainingCanceled):
                await hang.wait()
        async with training.connect(world.login["address"], key_id="nobody", key="wrong") as stranger:
            with pytest.raises(MachineError, match="wrong"):
                await stranger.list_training_jobs(world.organization)


async def test_the_cloud_restarts_while_a_job_is_followed(world: World) -> None:
    """The job is interrupted, and continues; the events continue behind the last one."""
    with trio.fail_after(LIMIT):
        async with relay(world.running.address) as middle:
            async with training.connect(**{**world.login, "address": f"http://{middle.address}"}) as client:
                job = await client.submit_custom_training_job(
                    world.organization, world.dataset, world.script, "1", "parts", "1", {"do": "hang"}
                )
                seen, hanging = list[Numbered](), 0
                async with AsyncExitStack() as stack:
                    async for entry in job.numbered_events():
                        seen.append(entry)
                        if entry.event != Log("hanging"):
                            continue
                        hanging += 1
                        if hanging == 1:
                            await world.running.stop()
                            again = cloud(world.folder / "cloud", *world.options)
                            middle.target = (await stack.enter_async_context(again)).address
                        else:
                            await job.cancel()
                    assert hanging == 2
                    assert [entry async for entry in job.numbered_events()] == seen
                    assert [entry async for entry in job.numbered_events(after=seen[2].number)] == seen[3:]


async def test_a_cloud_that_does_not_answer(world: World) -> None:
    with trio.fail_after(LIMIT):
        async with training.connect(**world.login) as client:
            await client.list_training_jobs(world.organization)
            await world.running.stop()
            with pytest.raises(MachineError, match="no answer from the cloud"):
                await client.job("x").wait(patience=0)


# ---- the commands


async def test_the_commands(world: World) -> None:
    user, folder = world.terminal, world.folder / "model"
    arguments = ("--script", world.script, "--version", "1", "--wait")
    with trio.fail_after(LIMIT):
        said = await user("train", "submit-custom", "parts-pictures", "parts", *arguments)
        job = said.split()[0]
        assert "\ntraining\n1 of 1 done\n" in said
        assert f"{world.organization}/parts 1 is in the registry" in said
        assert (await user("train", "ls", "-q")).split() == [job]
        (listed,) = json.loads(await user("train", "ls", "--json", "--status", "completed"))
        assert (listed["id"], listed["state"], listed["model_name"]) == (job, "completed", "parts")
        assert job in await user("train", "ls")
        assert "completed" in await user("train", "status", job)
        lines = [json.loads(line) for line in (await user("train", "logs", job, "--json")).splitlines()]
        assert [line["kind"] for line in lines if line.get("message", "training") == "training"][:1] == ["status"]
        assert {"kind": "progress", "done": 1, "total": 1}.items() <= lines[-2].items() or len(lines) > 3
        assert "training" in await user("train", "logs", job, "-f")
        assert (await user("train", "download", job, str(folder))).split() == [str(folder / "model.onnx")]
        assert (folder / "model.onnx").read_bytes() == MODEL
        assert "has no report" in await user("train", "report", job, status=1)
        failing = await user("train", "submit-custom", "parts-pictures", "parts", "--script", world.script,
                             "--arg", "do=fail", "--wait", status=1)  # fmt: skip
        assert "no idea how" in failing
        assert "failed: " in failing
        assert "deleted" in await user("train", "delete", job, "--yes")
        missing = await user("train", "status", job, status=1)
        assert "no training job" in missing


async def test_a_report_and_the_use_of_a_model(world: World) -> None:
    user = world.terminal
    arguments = ("--script", world.script, "--arg", "do=report", "--version", "7", "--wait")
    with trio.fail_after(LIMIT):
        job = (await user("train", "submit-custom", "parts-pictures", "parts", *arguments)).split()[0]
        shown = await user("train", "report", job)
        assert "accuracy: 50 %" in shown
        assert "remark: few pictures" in shown
        assert json.loads(await user("train", "report", job, "--json"))["labels"] == ["ok"]
        async with training.connect(**world.login) as client:
            report = await client.job(job).report()
            assert report is not None
            assert report.test.accuracy == 0.5
        changes = await user("train", "use", job, "rover", status=2)
        assert "+ services.parts-model\n+ services.parts\n+ packages.parts" in changes
        assert "add --yes" in changes
        assert json.loads(await user("config", "get", "rover")) == {}
        assert "saved" in await user("train", "use", job, "rover", "--yes")
        (package,) = json.loads(await user("config", "get", "rover"))["packages"]
        assert (package["package"], package["version"]) == (f"{world.organization}/parts", "7")
        assert "nothing changed" in await user("train", "use", job, "rover", "--yes")


async def test_a_webhook_about_the_end_of_a_job(tmp_path: Path, world: World) -> None:
    secret_file = tmp_path / "secret"
    secret_file.write_text("whsec_" + "A" * 32)
    user = world.terminal
    with trio.fail_after(LIMIT):
        async with receiver() as hooks:
            added = await user("train", "notify", "--webhook", hooks.url(), "--secret-file", str(secret_file))
            assert "none yet" in added
            arguments = ("--script", world.script, "--arg", "do=fail", "--version", "8", "--wait")
            job = (await user("train", "submit-custom", "parts-pictures", "parts", *arguments, status=1)).split()[0]
            while not hooks.requests:
                await hooks.changed.wait()
            (request,) = hooks.requests
            body = Webhook(secret_file.read_text()).verify(request.body, request.headers)
            assert (body["job_id"], body["state"]) == (job, "failed")
            while json.loads(await user("train", "notify", "--json"))[0]["state"] != "delivered":
                pass  # the answer of the receiver is being recorded
            assert "no notifications" in await user("train", "notify", "--remove", hooks.url())
            assert "lists who is" in await user("train", "notify", "--remove", hooks.url(), status=1)


async def test_a_refused_submission_lists_everything_that_is_missing(world: World) -> None:
    said = await world.terminal(
        "train", "submit", "parts-pictures", "parts", "--label", "ok", "--label", "bad", status=1
    )
    assert "  the label 'ok' has 2 pictures, 8 more needed\n  the label 'bad' has 0 pictures, 10 more needed\n" in said
    unknown = await world.terminal("train", "submit", "nothing", "parts", "--label", "ok", status=1)
    assert "there is no dataset 'nothing': use one of 'parts-pictures'" in unknown
    wrong = ("train", "submit-custom", "parts-pictures", "parts", "--script", world.script, "--arg", "do")
    assert "is not KEY=VALUE" in await world.terminal(*wrong, status=2)


async def test_ctrl_c_leaves_the_job_running(world: World) -> None:
    words = (
        "train",
        "submit-custom",
        "parts-pictures",
        "parts",
        "--script",
        world.script,
        "--arg",
        "do=hang",
        "--wait",
    )
    environment = {**os.environ, "XDG_CONFIG_HOME": str(world.terminal.home)}
    command = [sys.executable, "-m", "command.cli", "cloud", *words]
    with trio.fail_after(LIMIT):
        process = await trio.lowlevel.open_process(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
        assert process.stdout is not None
        said = b""
        while b"hanging" not in said:
            piece = await process.stdout.receive_some()
            assert piece, said
            said += piece
        process.send_signal(signal.SIGINT)
        while piece := await process.stdout.receive_some():
            said += piece
        assert await process.wait() == 130, said.decode()
        job = said.decode().split()[0]
        assert f"the job continues: follow it with `machine cloud train logs -f {job}`" in said.decode()
        assert "in_progress" in await world.terminal("train", "status", job)
        assert "cancel" in await world.terminal("train", "cancel", job)
