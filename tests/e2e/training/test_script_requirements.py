"""A script that requires a package, as jobs of a cloud: canceled, killed with the cloud, and completed."""

from __future__ import annotations

import io
import os
import signal
import sys
import tarfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from viam.proto.app.mltraining import TrainingStatus

from rpc.api.client import ApiClient
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.training.engine import isolates  # noqa: F401 - a fixture
from tests.e2e.training.test_environments import Hanging, hanging  # noqa: F401 - a fixture
from tests.e2e.training.test_example import PACKAGES, content_of
from tests.e2e.training.test_loop import ended, labelled, log_of, part_of, with_sdk
from tests.e2e.training.wheels import add_wheel, digest, url
from training.environments.environments import uv_program

SCRIPT: Final = """
import argparse, pathlib, greeting
parser = argparse.ArgumentParser()
parser.add_argument("--dataset_file")
parser.add_argument("--model_output_directory", type=pathlib.Path)
(parser.parse_args().model_output_directory / "model.txt").write_text(greeting.TEXT)
"""
METADATA: Final = "Metadata-Version: 2.2\nName: script\nVersion: 1\nRequires-Dist: greeting>=1\n\n"

pytestmark = [
    pytest.mark.usefixtures("isolates"),
    pytest.mark.skipif(not uv_program(), reason="uv is not installed"),
]


async def upload(client: ApiClient, organization: str, version: str, files: Mapping[str, str]) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, text in {"model/training.py": SCRIPT, **files}.items():
            info = tarfile.TarInfo(f"script-{version}/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))

    async def pieces() -> AsyncIterator[bytes]:
        yield file.getvalue()

    values = {"organization_id": organization, "name": "script", "version": version, "type": "ML_TRAINING"}
    await client.call(PACKAGES, "", "create_package", **values, pieces=pieces())


async def test_a_script_with_requirements(tmp_path: Path, hanging: Hanging) -> None:  # noqa: F811
    index = tmp_path / "index"
    wheel = add_wheel(index, "greeting", "1.0", {"greeting.py": "TEXT = 'hello'\n"})
    python = f"--training-python={sys.executable}"
    async with cloud(tmp_path / "cloud", python, f"--training-index={hanging[0]}", "--training-jobs=2") as first:
        organization, part = first.facts["organization"], await part_of(first)
        async with first.client() as client:
            await upload(client, organization, "1", {"PKG-INFO": METADATA})
            await upload(client, organization, "2", {"requirements.txt": "--index-url http://evil\n"})

        async def submit(sdk: Any, script: str, version: str, dataset: str) -> str:
            return str(
                await sdk.ml_training_client.submit_custom_training_job(
                    organization, dataset, f"{organization}:script", script, "words", version
                )
            )

        async def begin(sdk: Any) -> tuple[str, str]:
            dataset = await labelled(sdk, organization, part["id"], 1)
            canceled = await submit(sdk, "1", "0", dataset)
            return canceled, dataset

        canceled, dataset = await with_sdk(first, begin)
        with trio.fail_after(30):
            await hanging[1].receive()

        async def cancel(sdk: Any) -> tuple[int, str]:
            await sdk.ml_training_client.cancel_training_job(canceled)
            metadata = await ended(sdk.ml_training_client, canceled)
            return metadata.status, await submit(sdk, "1", "1", dataset)

        state, job = await with_sdk(first, cancel)
        assert state == TrainingStatus.TRAINING_STATUS_CANCELED
        environments = tmp_path / "cloud" / "data" / "environments"
        with trio.fail_after(30):
            await hanging[1].receive()
        first.process.send_signal(signal.SIGKILL)
        await first.process.wait()
    assert [name[:12] for name in os.listdir(environments)] == [".unfinished-"]

    async with cloud(tmp_path / "cloud", python, f"--training-index={url(index)}") as second:
        second.facts.update({name: first.facts[name] for name in ("key id", "key")})

        async def result(sdk: Any, job: str) -> tuple[str, list[str]]:
            metadata = await ended(sdk.ml_training_client, job)
            return metadata.error_status.message, await log_of(sdk.ml_training_client, job)

        error, log = await with_sdk(second, lambda sdk: result(sdk, job))
        assert error == "", log
        assert {"resolving the requirements of PKG-INFO", "resolved to greeting==1.0"} <= set(log)
        files = await model_of(second, organization)
        assert files == {
            "model.txt": b"hello",
            "requirements.lock": f"greeting==1.0 --hash=sha256:{digest(wheel)}\n".encode(),
        }
        assert len(os.listdir(environments)) == 1

        async def more(sdk: Any) -> list[tuple[str, list[str]]]:
            jobs = [await submit(sdk, "1", "2", dataset), await submit(sdk, "2", "3", dataset)]
            return [await result(sdk, job) for job in jobs]

        (error, log), (refusal, _) = await with_sdk(second, more)
        assert error == ""
        assert "using the environment that was made before from the same lock" in log
        assert "requirements.txt, line 1: '--index-url http://evil': the option --index-url is not accepted" in refusal
        assert await second.stop() == 0


async def model_of(running: CloudProcess, organization: str) -> dict[str, bytes]:
    async with running.client() as client:
        model = {"id": f"{organization}/words", "version": "1", "type": "ML_MODEL"}
        package = await client.call(PACKAGES, "", "get_package", **model)
    return await trio.to_thread.run_sync(content_of, package["url"])
