"""The example script of examples/training runs as a job, as its how-to says, and reports what its helper promises."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.e2e.cloud.process import cloud
from tests.e2e.training.engine import isolates  # noqa: F401 - a fixture
from tests.e2e.training.test_loop import ended, labelled, log_of, part_of, with_sdk

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "training"
PACKAGES: Final = "viam.app.packages.v1.PackageService"

pytestmark = pytest.mark.usefixtures("isolates")


def archive() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name in ("setup.py", "requirements.txt", "model/report.py", "model/training.py"):
            tar.add(EXAMPLE / name, name)
    return file.getvalue()


def content_of(url: str) -> dict[str, bytes]:
    with urllib.request.urlopen(url, timeout=30) as answer, tarfile.open(fileobj=io.BytesIO(answer.read())) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


async def test_the_example_script(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", f"--training-python={sys.executable}") as running, running.client() as client:
        organization, part = running.facts["organization"], await part_of(running)

        async def pieces() -> AsyncIterator[bytes]:
            yield archive()

        values = {"organization_id": organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
        await client.call(PACKAGES, "", "create_package", **values, pieces=pieces())

        async def train(sdk: Any) -> tuple[str, list[str]]:
            training, script = sdk.ml_training_client, f"{organization}:script"
            dataset = await labelled(sdk, organization, part["id"], 3)
            job = await training.submit_custom_training_job(organization, dataset, script, "1", "colors", "1")
            metadata = await ended(training, job)
            return metadata.error_status.message, await log_of(training, job)

        error, log = await with_sdk(running, train)
        assert error == "", log
        assert {"6 of 6 done", "accuracy_on_training_pictures 1 (step 0)"} <= set(log)
        model = {"id": f"{organization}/colors", "version": "1", "type": "ML_MODEL"}
        package = await client.call(PACKAGES, "", "get_package", **model)
        files = await trio.to_thread.run_sync(content_of, package["url"])
        means = json.loads(files["colors.json"])
        assert files["labels.txt"] == b"green\nred\n"
        assert means["green"][1] > means["green"][0]
        assert means["red"][0] > means["red"][1]
