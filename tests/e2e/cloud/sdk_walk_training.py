"""A walk through MLTrainingClient of the official Python SDK: each method, and its answer; the log by the stub."""

from __future__ import annotations

import asyncio
import io
import tarfile
from typing import Any, Final

from grpclib import Status
from viam.app.data_client import DataClient
from viam.app.ml_training_client import MLTrainingClient
from viam.app.viam_client import ViamClient
from viam.gen.app.packages.v1.packages_grpc import PackageServiceStub
from viam.proto.app.data import Filter
from viam.proto.app.mltraining import (
    GetTrainingJobLogsRequest,
    ListSupportedContainersRequest,
    ModelType,
    TrainingStatus,
)
from viam.proto.app.packages import CreatePackageRequest, PackageInfo, PackageType

from tests.e2e.cloud.sdk_seen import Seen
from tests.e2e.cloud.sdk_walk_app import Place
from tests.e2e.cloud.sdk_walk_data import ids, picture

LINES: Final = 520  # of the script's output: more than a page of the log, which has 500 entries
EACH: Final = 10  # pictures of each label
FINAL: Final = (
    TrainingStatus.TRAINING_STATUS_COMPLETED,
    TrainingStatus.TRAINING_STATUS_FAILED,
    TrainingStatus.TRAINING_STATUS_CANCELED,
)


def script(lines: int) -> bytes:
    """Return the archive of a training script that prints some lines and writes a model."""
    code = f"""
import pathlib, sys
for number in range({lines}):
    print("line", number)
folder = next(word.partition("=")[2] for word in sys.argv if word.startswith("--model_output_directory"))
pathlib.Path(folder, "model.txt").write_text("model")
"""
    return packed(code)


def packed(code: str) -> bytes:
    """Return the archive of a training script."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in (("setup.py", b""), ("model/training.py", code.encode())):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


async def uploaded(client: ViamClient, organization: str, archive: bytes) -> str:
    """Upload a script by the stub, for which the SDK has no method; return its registry id."""
    app = client.app_client
    info = PackageInfo(
        organization_id=organization, name="lines", version="1", type=PackageType.PACKAGE_TYPE_ML_TRAINING
    )
    async with PackageServiceStub(app._channel).CreatePackage.open(metadata=app._metadata) as stream:
        await stream.send_message(CreatePackageRequest(info=info))
        await stream.send_message(CreatePackageRequest(contents=archive))
        await stream.end()
        created = await stream.recv_message()
    assert created is not None
    return f"{organization}:lines"


async def labelled(data: DataClient, organization: str, part: str) -> str:
    """Return a dataset that suffices for the labels red and blue."""
    dataset = await data.create_dataset("colors", organization)
    for label in ("red", "blue"):
        files = [
            await data.file_upload(part, picture(f"hsl({number}, 90%, 50%)"), file_name=label, file_extension=".png")
            for number in range(EACH)
        ]
        await data.add_tags_to_binary_data_by_ids([label], files)
        await data.add_binary_data_to_dataset_by_ids(files, dataset)
    return dataset


async def ended(training: MLTrainingClient, job: str) -> Any:
    """Return a job that has ended; the caller limits the time."""
    while (metadata := await training.get_training_job(job)).status not in FINAL:  # noqa: ASYNC110 - the SDK has no events
        await asyncio.sleep(0.05)
    return metadata


async def pages(training: MLTrainingClient, job: str) -> list[list[str]]:
    """Return the pages of a job's log by the stub, for which the SDK has no method."""
    got, token = [], ""
    while True:
        request = GetTrainingJobLogsRequest(id=job, page_token=token) if token else GetTrainingJobLogsRequest(id=job)
        page = await training._ml_training_client.GetTrainingJobLogs(request, metadata=training._metadata)
        got.append([entry.message for entry in page.logs])
        token = page.next_page_token
        if not token:
            return got


async def train(client: ViamClient, seen: Seen, at: Place, part: str) -> None:
    """Run a script, cancel the training of a classifier, and delete all that was made."""
    training, data, owner = client.ml_training_client, client.data_client, at.organization
    single = ModelType.MODEL_TYPE_SINGLE_LABEL_CLASSIFICATION
    dataset, registered = await labelled(data, owner, part), await uploaded(client, owner, script(LINES))
    custom = await training.submit_custom_training_job(owner, dataset, registered, "1", "scripted", "1")
    job = await training.submit_training_job(owner, dataset, "colors", "1", single, ["red", "blue"])
    await training.cancel_training_job(job)
    canceled = await ended(training, job)
    facts = (canceled.model_name, canceled.model_version, canceled.model_type, [*canceled.tags], canceled.dataset_id)
    seen("submit_training_job", facts, ("colors", "1", single, ["red", "blue"], dataset))
    seen("cancel_training_job", canceled.status, TrainingStatus.TRAINING_STATUS_CANCELED)
    await seen.refused(training.cancel_training_job(job), Status.FAILED_PRECONDITION, "canceled")
    done = await ended(training, custom)
    seen("get_training_job", (done.status, done.error_status.message), (FINAL[0], ""))
    custom_facts = (done.is_custom_job, done.registry_item_id, done.registry_item_version, done.synced_model_id)
    seen("submit_custom_training_job", custom_facts, (True, "acme:lines", "1", f"{owner}/scripted"))
    log = await pages(training, custom)
    assert [len(page) for page in log[:-1]] == [500]
    lines = [line for page in log for line in page if line.startswith("line ")]
    assert lines == [f"line {number}" for number in range(LINES)]
    listed = [each.id for each in await training.list_training_jobs(owner)]
    some = await training.list_training_jobs(owner, TrainingStatus.TRAINING_STATUS_CANCELED)
    seen("list_training_jobs", (listed, [each.id for each in some]), ([job, custom], [job]))
    for subject in (job, custom):
        await training.delete_completed_training_job(subject)
        await seen.refused(training.get_training_job(subject), Status.NOT_FOUND)
    seen("delete_completed_training_job", await training.list_training_jobs(owner), [])
    await _containers(training, seen, owner)
    await client.app_client.delete_registry_item(registered)
    await client.app_client.delete_registry_item(f"{owner}:scripted")
    files, _, _ = await data.binary_data_by_filter(Filter(dataset_id=dataset), include_binary_data=False)
    await data.delete_binary_data_by_ids(ids(files))
    await data.delete_dataset(dataset)


async def _containers(training: MLTrainingClient, seen: Seen, owner: str) -> None:
    seen("list_containers", [container.key for container in await training.list_containers(owner)], ["local"])
    supported = await training._ml_training_client.ListSupportedContainers(
        ListSupportedContainersRequest(), metadata=training._metadata
    )
    assert set(supported.container_map) == {"local"}
    for method, call in (
        ("get_container", training.get_container("x")),
        ("register_custom_training_container", training.register_custom_training_container(owner, "x/y", "z")),
        ("delete_custom_training_container", training.delete_custom_training_container("x")),
    ):
        words = "".join(part.title() for part in method.split("_"))
        await seen.unbuilt(f"viam.app.mltraining.v1.MLTrainingService/{words}", method, call)
