"""The classification trainer, copied into the registry and run as a training script, with the official SDK."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.cloud.process import cloud
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.training.engine import isolates  # noqa: F401 - a fixture
from tests.e2e.training.test_example import PACKAGES, content_of
from tests.e2e.training.test_loop import ended, labelled, log_of, part_of, with_sdk
from training.client.trainers import trainer_archive

pytestmark = [
    pytest.mark.usefixtures("isolates"),
    pytest.mark.skipif(find_spec("onnxruntime") is None, reason="the extra ml is not installed"),
]


async def test_a_copied_trainer(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", f"--training-python={sys.executable}") as running, running.client() as client:
        organization, part = running.facts["organization"], await part_of(running)
        terminal = Terminal(running, tmp_path / "home")
        key_id, key = running.key
        await terminal("login", f"http://{running.address}", "--key-id", key_id, MACHINE_CLOUD_KEY=key)
        assert "classification" in await terminal("train", "trainers")
        copy = ("train", "copy-trainer", "classification")
        said = await terminal(*copy, "--as", "mine", "--version", "1")
        assert f"{organization}/mine 1 was uploaded" in said
        assert f"--script {organization}:mine" in said
        assert "already" in await terminal(*copy, "--as", "mine", "--version", "1", status=1)
        await terminal(*copy, "--output", str(tmp_path / "copy.tar.gz"))
        assert await trio.Path(tmp_path / "copy.tar.gz").read_bytes() == trainer_archive("classification")
        assert "name one of --as ITEM and --output FILE" in await terminal(*copy, status=2)
        assert "there is no trainer 'none'" in await terminal(*copy[:2], "none", "--as", "x", status=1)

        async def train(sdk: Any) -> tuple[str, list[str]]:
            training = sdk.ml_training_client
            dataset = await labelled(sdk, organization, part["id"], 8)
            job = await training.submit_custom_training_job(
                organization, dataset, f"{organization}:mine", "1", "colors", "1"
            )
            metadata = await ended(training, job)
            return metadata.error_status.message, await log_of(training, job)

        error, log = await with_sdk(running, train)
        assert error == "", log
        assert "test_accuracy 1 (step 0)" in log
        package = await client.call(
            PACKAGES, "", "get_package", id=f"{organization}/colors", version="1", type="ML_MODEL"
        )
        files = await trio.to_thread.run_sync(content_of, package["url"])
        assert set(files) == {"LICENSE", "NOTICE", "labels.txt", "model.onnx", "report.json"}
        assert files["labels.txt"] == b"green\nred\n"
        assert json.loads(files["report.json"])["seed"] == 0
