"""The tutorial docs/tutorial/train-a-model.md: capture, label, train and deploy; then unseen parts are recognized.

The parts are those of examples/parts/belt.py, the weights are those of the product, and the client is the official SDK.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from viam.app.viam_client import ViamClient
from viam.proto.app.data import Filter
from viam.proto.app.mltraining import ModelType, TrainingStatus

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import MachineError
from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server
from tests.e2e.training.test_loop import APP, PATIENCE, ended, log_of, part_of, with_sdk

ROOT: Final = Path(__file__).parents[3]
TUTORIAL: Final = ROOT / "docs" / "tutorial" / "train-a-model.md"
HOWTO: Final = ROOT / "docs" / "howto" / "train-a-model.md"
MANAGER: Final = "rdk:service:data_manager"
EACH: Final = 15  # pictures of each kind to learn from
UNSEEN: Final = 5  # pictures of each kind to try
RIGHT: Final = 14  # of the 15 unseen pictures

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("numpy", "onnxruntime")),
    reason="the extra ml is not installed",
)


def example() -> Any:
    """Import examples/parts/belt.py."""
    spec = importlib.util.spec_from_file_location("belt", ROOT / "examples" / "parts" / "belt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documents(folder: Path, organization: str) -> list[dict[str, Any]]:
    """Return the JSON examples of the tutorial with the values of the test, which captures faster."""
    changes = {"/tmp/belt": str(folder), "ORGANIZATION": organization, '_frequency_hz": 1': '_frequency_hz": 10'}
    text = TUTORIAL.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return [json.loads(block.partition("```")[0]) for block in text.split("```json\n")[1:]]


def joined(*documents: Mapping[str, list[Any]]) -> str:
    sections = {key for document in documents for key in document}
    return json.dumps({key: [entry for document in documents for entry in document.get(key, ())] for key in sections})


async def captured(client: ApiClient, belt: Any, folder: Path, chance: random.Random) -> dict[str, str]:
    """Let the machine capture each part; return the kinds by the digests of the pictures."""
    kinds: dict[str, str] = {}
    for kind in [*belt.KINDS] * EACH:
        content = belt.draw(chance, kind)
        kinds[hashlib.sha256(content).hexdigest()] = kind
        belt.show(folder, content)
        before = await count(client)
        with trio.fail_after(PATIENCE):
            # The first one may have been taken before. The published calls have no events.
            while await count(client) < before + 2:  # noqa: ASYNC110
                await trio.sleep(0.02)
    await client.call(MANAGER, "data", "sync")
    return kinds


def uncertain(dataset: str, bounds: list[float]) -> dict[str, Any]:
    """Return the vision service of the how-to, which captures results between two bounds into a dataset."""
    (text,) = (block for block in HOWTO.read_text().split("```") if '"confidence_between"' in block)
    changes = {"json\n": "", '"eye"': '"belt"', "DATASET": dataset, "[0.3, 0.7]": str(bounds), '_hz": 0.2': '_hz": 5'}
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    service: dict[str, Any] = json.loads(text)
    return service


async def made_better(owner: ApiClient, client: ApiClient, part: Mapping[str, Any], *documents: Any) -> None:
    """Capture what the model is not sure about: it arrives in the dataset, with suggestions that are no labels yet."""
    organization = (await owner.call(APP, "", "list_organizations"))[0]["id"]
    sets = "viam.app.dataset.v1.DatasetService"
    (dataset,) = await owner.call(sets, "", "list_datasets_by_organization_id", organization_id=organization)
    for document in documents:
        document["services"] = [service for service in document["services"] if service["name"] != "parts"]

    async def until(bounds: list[float], number: str) -> Mapping[str, Any]:
        service = uncertain(dataset["id"], bounds)
        await configure(owner, part, joined(*documents, {"services": [service]}))
        with trio.fail_after(PATIENCE):
            while True:
                await trio.sleep(0.2)  # the published calls have no events
                with suppress(MachineError):  # it is being reconfigured
                    methods = (await client.call(MANAGER, "data", "get_status"))["methods"]
                    for name, counters in methods.items():
                        if "CaptureAllFromCamera" in name and counters[number]:
                            return dict(counters)

    sure = await until([0, 0.001], "filtered")
    assert not sure["captured"]
    await until([0, 1], "captured")
    await client.call(MANAGER, "data", "sync")
    request = {"filter": {"dataset_id": dataset["id"]}, "limit": 1, "sort_order": "ORDER_DESCENDING"}
    data = "viam.app.data.v1.DataService"
    with trio.fail_after(PATIENCE):
        while True:
            page = await owner.call(data, "", "binary_data_by_filter", data_request=request)
            newest = page["data"][0]["metadata"]
            if newest["capture_metadata"]["method_name"] == "CaptureAllFromCamera":
                break
            await trio.sleep(0.2)  # as above
    (*_, suggestion) = newest["annotations"]["classifications"]
    assert 0 < suggestion["confidence"] <= 1
    assert not newest["capture_metadata"]["tags"]


async def count(client: ApiClient) -> int:
    """Return the number of captured pictures, 0 while the machine starts."""
    try:
        status = await client.call(MANAGER, "data", "get_status")
    except MachineError:
        return 0
    return sum(int(method["captured"]) for method in status["methods"].values())


async def labelled(client: ViamClient, organization: str, kinds: Mapping[str, str]) -> str:
    """Label every picture as a person who looks at it does; return the dataset."""
    data = client.data_client
    files, _, _ = await data.binary_data_by_filter(Filter(component_name="belt"), limit=1000)
    dataset = await data.create_dataset("parts", organization)
    labels: dict[str, str] = {}
    for file in files:
        assert file.metadata.binary_data_id
        labels.setdefault(hashlib.sha256(file.binary).hexdigest(), file.metadata.binary_data_id)
    assert set(labels) == set(kinds), "each part was captured"
    for digest, file_id in labels.items():
        await data.add_tags_to_binary_data_by_ids([kinds[digest]], [file_id])
    await data.add_binary_data_to_dataset_by_ids(list(labels.values()), dataset)
    return str(dataset)


async def trained(client: ViamClient, organization: str, kinds: Mapping[str, str]) -> None:
    dataset = await labelled(client, organization, kinds)
    training, single = client.ml_training_client, ModelType.MODEL_TYPE_SINGLE_LABEL_CLASSIFICATION
    labels = sorted(set(kinds.values()))
    job = await training.submit_training_job(organization, dataset, "parts", "1", single, labels)
    metadata = await ended(training, job)
    log = await log_of(training, job)
    assert metadata.status == TrainingStatus.TRAINING_STATUS_COMPLETED, (metadata, log)
    print(*log, sep="\n")


async def answer_of(client: ApiClient) -> str:
    """Return what the vision service sees; waits until the model's package was downloaded."""
    ask = partial(client.call, "rdk:service:vision", "parts", "get_classifications_from_camera")
    with trio.fail_after(PATIENCE):
        while True:
            try:
                return str((await ask(camera_name="belt", n=1))[0]["class_name"])
            except MachineError:
                await trio.sleep(0.2)  # the published calls have no events


async def test_from_a_camera_to_a_model_on_the_machine(tmp_path: Path) -> None:
    belt, chance, folder = example(), random.Random(18), tmp_path / "belt"
    folder.mkdir()
    belt.show(folder, belt.draw(chance, "missing"))
    async with cloud(tmp_path / "cloud") as running, running.client() as owner:
        organization, part = running.facts["organization"], await part_of(running)
        capture, model = documents(folder, organization)
        await configure(owner, part, joined(capture))
        machine_folder = tmp_path / "machine"
        machine_folder.mkdir()
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        environment = {**os.environ, "MACHINE_HOME": str(machine_folder / "home")}
        async with (
            server(machine_folder, {"cloud": credentials}, "-disable-mdns", env=environment) as machine,
            Channel(machine.address, credentials=ApiKey(*running.key)) as channel,
        ):
            client = ApiClient(channel)
            kinds = await captured(client, belt, folder, chance)
            await with_sdk(running, lambda sdk: trained(sdk, organization, kinds))
            await configure(owner, part, joined(capture, model))
            await answer_of(client)
            answers = []
            for kind in [*belt.KINDS] * UNSEEN:
                belt.show(folder, belt.draw(chance, kind))
                answers.append((kind, await answer_of(client)))
            await made_better(owner, client, part, capture, model)
        assert sum(kind == answer for kind, answer in answers) >= RIGHT, answers


async def configure(owner: ApiClient, part: Mapping[str, Any], document: str) -> None:
    await owner.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=document)
