"""From labelled pictures to a vision service of a machine, with the unmodified official Python SDK."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import sys
import tarfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from grpclib import GRPCError, Status
from viam.app.ml_training_client import MLTrainingClient
from viam.app.viam_client import ViamClient
from viam.proto.app.mltraining import (
    GetTrainingJobLogsRequest,
    ListSupportedContainersRequest,
    ModelType,
    TrainingStatus,
)

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.sdk_client import signed_in
from tests.e2e.harness import relative
from tests.e2e.server.process import server
from tests.e2e.training.engine import SCRIPT
from tests.unit.training.trainers.small import picture

APP: Final = "viam.app.v1.AppService"
LABELS: Final = ["red", "green"]
PATIENCE: Final = 90.0  # seconds for a job on a busy computer
FINAL: Final = (
    TrainingStatus.TRAINING_STATUS_COMPLETED,
    TrainingStatus.TRAINING_STATUS_FAILED,
    TrainingStatus.TRAINING_STATUS_CANCELED,
)
pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("numpy", "onnxruntime")), reason="the extra ml is not installed"
)


@asynccontextmanager
async def trained(folder: Path, *options: str) -> AsyncIterator[CloudProcess]:
    """Run a cloud, which trains with its own weights unless the options say otherwise."""
    os.mkdir(folder)
    async with cloud(folder / "cloud", *options) as running:
        yield running


async def with_sdk(running: CloudProcess, work: Any) -> Any:
    """Run `work(client)` with the SDK, on its own event loop in another thread."""

    async def main() -> Any:
        client = await signed_in(running.address, *running.key)
        try:
            return await work(client)
        finally:
            client.close()

    return await trio.to_thread.run_sync(lambda: asyncio.run(main()))


async def part_of(running: CloudProcess) -> dict[str, Any]:
    async with running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part: dict[str, Any] = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        return part


def encoded(chance: random.Random, label: str) -> bytes:
    file = io.BytesIO()
    picture(chance, label).save(file, "PNG")
    return file.getvalue()


async def labelled(client: ViamClient, organization: str, part: str, count: int = 12) -> str:
    """Upload and label pictures as the SDK's documentation does; return the dataset."""
    data, chance = client.data_client, random.Random(3)
    dataset = await data.create_dataset("colors", organization)
    for label in LABELS:
        for number in range(count):
            file = await data.file_upload(
                part_id=part, data=encoded(chance, label), file_name=f"{label}{number}", file_extension=".png"
            )
            await data.add_tags_to_binary_data_by_ids([label], [file])
            await data.add_binary_data_to_dataset_by_ids([file], dataset)
    return dataset


async def ended(training: MLTrainingClient, job: str, patience: float = PATIENCE) -> Any:
    """Return a job that has ended. The SDK has no events, so it is asked again and again, as users do."""
    end = time.monotonic() + patience
    while True:
        metadata = await training.get_training_job(job)
        if metadata.status in FINAL or time.monotonic() > end:
            return metadata
        await asyncio.sleep(0.1)


async def log_of(training: MLTrainingClient, job: str) -> list[str]:
    """Return the log; the SDK has no method for it, but a stub."""
    stub, metadata = training._ml_training_client, training._metadata
    answer = await stub.GetTrainingJobLogs(GetTrainingJobLogsRequest(id=job), metadata=metadata)
    return [entry.message for entry in answer.logs]


async def test_from_pictures_to_a_vision_service(tmp_path: Path) -> None:
    async with trained(tmp_path / "all") as running:
        organization, part = running.facts["organization"], await part_of(running)

        async def train(client: ViamClient) -> tuple[Any, list[str]]:
            training = client.ml_training_client
            dataset = await labelled(client, organization, part["id"])
            with pytest.raises(GRPCError, match="'blue' has 0 pictures, 10 more needed") as caught:
                await training.submit_training_job(
                    organization,
                    dataset,
                    "colors",
                    "1",
                    ModelType.MODEL_TYPE_SINGLE_LABEL_CLASSIFICATION,
                    ["red", "blue"],
                )
            assert caught.value.status is Status.FAILED_PRECONDITION
            job = await training.submit_training_job(
                organization, dataset, "colors", "1", ModelType.MODEL_TYPE_SINGLE_LABEL_CLASSIFICATION, LABELS
            )
            metadata = await ended(training, job)
            log = await log_of(training, job)
            assert metadata.status == TrainingStatus.TRAINING_STATUS_COMPLETED, (metadata, log)
            assert [entry.id for entry in await training.list_training_jobs(organization)] == [job]
            failed = TrainingStatus.TRAINING_STATUS_FAILED
            assert await training.list_training_jobs(organization, failed) == []
            with pytest.raises(GRPCError) as caught:
                await training.cancel_training_job(job)
            assert caught.value.status is Status.FAILED_PRECONDITION
            await training.delete_completed_training_job(job)
            with pytest.raises(GRPCError) as caught:
                await training.get_training_job(job)
            assert caught.value.status is Status.NOT_FOUND
            return metadata, log

        metadata, log = await with_sdk(running, train)
        assert metadata.synced_model_id == f"{organization}/colors"
        assert "test_accuracy 1 (step 0)" in log
        await deployed(running, part, organization, tmp_path / "machine")
        await running.stop()
        left = os.listdir(tmp_path / "all" / "cloud" / "data" / "training")
        assert [name for name in left if not name.endswith(".lock")] == ["machine-cloud.json"]


async def deployed(running: CloudProcess, part: dict[str, Any], organization: str, folder: Path) -> None:
    """A machine with the model's package labels unseen pictures."""
    document = {
        "packages": [{"name": "colors", "package": f"{organization}/colors", "version": "1", "type": "ml_model"}],
        "services": [
            {
                "name": "model",
                "api": "rdk:service:mlmodel",
                "model": "onnx",
                "attributes": {
                    "model_path": "${packages.ml_model.colors}/model.onnx",
                    "label_path": "${packages.ml_model.colors}/labels.txt",
                },
            },
            {
                "name": "eye",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": {"mlmodel_name": "model"},
            },
        ],
    }
    async with running.client() as client:
        await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document))
    os.mkdir(folder)
    credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
    environment = {**os.environ, "MACHINE_HOME": str(folder / "home")}
    chance = random.Random(99)
    async with server(folder, {"cloud": credentials}, "-disable-mdns", env=environment) as machine:
        async with Channel(machine.address, credentials=ApiKey(*running.key)) as channel:
            for label in [*LABELS, *LABELS]:
                answer = await classified(ApiClient(channel), encoded(chance, label))
                assert answer[0]["class_name"] == label
                assert answer[0]["confidence"] > 0.5


async def classified(client: ApiClient, image: bytes, service: str = "eye") -> Any:
    ask = partial(client.call, "rdk:service:vision", service, "get_classifications")
    with trio.fail_after(PATIENCE):
        while True:
            try:
                return await ask(image=image, mime_type="image/png", n=2)
            except MachineError as error:  # the package is being downloaded
                last = error
            with trio.move_on_after(0.2):
                await trio.sleep_forever()
            assert last


def script_archive() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        tar.add(SCRIPT, "model/training.py")
        tar.addfile(tarfile.TarInfo("setup.py"))
    return file.getvalue()


async def test_custom_scripts(tmp_path: Path) -> None:
    python = relative(sys.executable, tmp_path / "all" / "cloud")
    options = (f"--training-python={python}", "--training-jobs=2", "--training-folder=jobs", "--files=captured")
    async with trained(tmp_path / "all", *options) as running, running.client() as client:
        organization, part = running.facts["organization"], await part_of(running)

        async def pieces() -> AsyncIterator[bytes]:
            yield script_archive()

        values = {"organization_id": organization, "name": "script", "version": "1", "type": "ML_TRAINING"}
        await client.call("viam.app.packages.v1.PackageService", "", "create_package", **values, pieces=pieces())

        async def train(sdk: ViamClient) -> None:
            training = sdk.ml_training_client
            stub, metadata = training._ml_training_client, training._metadata
            containers = await stub.ListSupportedContainers(ListSupportedContainersRequest(), metadata=metadata)
            assert set(containers.container_map) == {"local"}
            assert [container.key for container in await training.list_containers(organization)] == ["local"]
            with pytest.raises(GRPCError, match="without containers"):
                await training.register_custom_training_container(organization, "x/y", "z")
            dataset = await labelled(sdk, organization, part["id"], 1)
            script = f"{organization}:script"
            job = await training.submit_custom_training_job(organization, dataset, script, "1", "colors", "1")
            metadata = await ended(training, job)
            assert metadata.status == TrainingStatus.TRAINING_STATUS_COMPLETED, (metadata, await log_of(training, job))
            assert "training" in await log_of(training, job)

        await with_sdk(running, train)
        package = {"id": f"{organization}/colors", "version": "1", "type": "ML_MODEL"}
        await client.call("viam.app.packages.v1.PackageService", "", "get_package", **package)

        async def submit(do: str, version: str, path: str = "") -> str:
            dataset = (
                await client.call(
                    "viam.app.dataset.v1.DatasetService",
                    "",
                    "list_datasets_by_organization_id",
                    organization_id=organization,
                )
            )[0]["id"]
            return str(
                await client.call(
                    "viam.app.mltraining.v1.MLTrainingService",
                    "",
                    "submit_custom_training_job",
                    organization_id=organization,
                    dataset_id=dataset,
                    registry_item_id=f"{organization}:script",
                    registry_item_version="1",
                    model_name="colors",
                    model_version=version,
                    arguments={"do": do, "path": path},
                )
            )

        job = await submit("dataset", "4", path=organization)
        read = await with_sdk(running, lambda sdk: ended(sdk.ml_training_client, job))
        log = await with_sdk(running, lambda sdk: log_of(sdk.ml_training_client, job))
        assert read.status == TrainingStatus.TRAINING_STATUS_COMPLETED, "\n".join(log[-8:])
        assert "2 pictures, 2 different" in log
        assert any(line.startswith("refused: ") and "NOT_FOUND" in line for line in log), log
        keys = await client.call(APP, "", "list_keys", org_id=organization)
        assert not any("training job" in str(entry) for entry in keys), "its key is gone"
        job = await submit("connect", "5", path=running.address.replace("localhost", "127.0.0.1"))
        read = await with_sdk(running, lambda sdk: ended(sdk.ml_training_client, job))
        log = await with_sdk(running, lambda sdk: log_of(sdk.ml_training_client, job))
        assert read.status == TrainingStatus.TRAINING_STATUS_FAILED
        assert "Connection refused" in log[-2], "only the address of the job's own network leads to the cloud"
        job = await submit("link", "2")
        failed = await with_sdk(running, lambda sdk: ended(sdk.ml_training_client, job))
        assert "not a regular file" in failed.error_status.message
        hanging = await submit("hang", "3")

        async def cancel(sdk: ViamClient) -> Any:
            for _ in range(int(PATIENCE / 0.1)):
                if "hanging" in await log_of(sdk.ml_training_client, hanging):
                    break
                await asyncio.sleep(0.1)
            await sdk.ml_training_client.cancel_training_job(hanging)
            asked = await sdk.ml_training_client.get_training_job(hanging)
            assert asked.status == TrainingStatus.TRAINING_STATUS_CANCELING
            return await ended(sdk.ml_training_client, hanging)

        assert (await with_sdk(running, cancel)).status == TrainingStatus.TRAINING_STATUS_CANCELED
