"""From labelled boxes to a detector on a machine, with the official Python SDK and the shipped weights."""

from __future__ import annotations

import io
import json
import os
import random
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from PIL import Image, ImageDraw
from viam.app.viam_client import ViamClient
from viam.proto.app.mltraining import ModelType, TrainingStatus

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import MachineError
from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server
from tests.e2e.training.test_loop import APP, PATIENCE, ended, log_of, part_of, with_sdk

SIZE: Final = 160, 120
PICTURES: Final = 24
UNSEEN: Final = 8
OVERLAP: Final = 0.5  # intersection over union, as for mAP50

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("numpy", "onnxruntime")), reason="the extra ml is not installed"
)

Edges = tuple[float, float, float, float]


def drawn(chance: random.Random) -> tuple[bytes, Edges]:
    """Return a picture with one bright disc, and the box of the disc as fractions."""
    image = Image.effect_noise(SIZE, 40).convert("RGB")
    radius = chance.randint(16, 28)
    x, y = (chance.randint(radius, length - radius) for length in SIZE)
    pixels = x - radius, y - radius, x + radius, y + radius
    ImageDraw.Draw(image).ellipse(pixels, fill=(230, chance.randint(20, 60), 40), outline=(255, 255, 255), width=3)
    file = io.BytesIO()
    image.save(file, "PNG")
    width, height = SIZE
    return file.getvalue(), (pixels[0] / width, pixels[1] / height, pixels[2] / width, pixels[3] / height)


def overlap(box: Edges, other: Edges) -> float:
    """Return the intersection over union of two boxes."""
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    both = max(0.0, width) * max(0.0, height)
    return both / (sum((each[2] - each[0]) * (each[3] - each[1]) for each in (box, other)) - both)


async def trained(client: ViamClient, organization: str, part: str) -> None:
    data, chance = client.data_client, random.Random(4)
    dataset = await data.create_dataset("discs", organization)
    for number in range(PICTURES):
        content, edges = drawn(chance)
        file = await data.file_upload(part_id=part, data=content, file_name=f"{number}", file_extension=".png")
        await data.add_bounding_box_to_image_by_id(file, "disc", *edges)
        await data.add_binary_data_to_dataset_by_ids([file], dataset)
    training = client.ml_training_client
    job = await training.submit_training_job(
        organization, dataset, "discs", "1", ModelType.MODEL_TYPE_OBJECT_DETECTION, ["disc"]
    )
    metadata = await ended(training, job, 6 * PATIENCE)  # a detector takes 80 seconds of the processor
    assert metadata.status == TrainingStatus.TRAINING_STATUS_COMPLETED, (metadata, await log_of(training, job))


def document(organization: str) -> str:
    files = "${packages.ml_model.discs}"
    model = {"model_path": f"{files}/model.onnx", "label_path": f"{files}/labels.txt"}
    vision = {"mlmodel_name": "model"}
    return json.dumps(
        {
            "packages": [{"name": "discs", "package": f"{organization}/discs", "version": "1", "type": "ml_model"}],
            "services": [
                {"name": "model", "api": "rdk:service:mlmodel", "model": "onnx", "attributes": model},
                {"name": "discs", "api": "rdk:service:vision", "model": "mlmodel", "attributes": vision},
            ],
        }
    )


async def best_box(client: ApiClient, image: bytes) -> Edges:
    """Return the most confident box; waits until the model's package was downloaded."""
    ask = partial(client.call, "rdk:service:vision", "discs", "get_detections")
    with trio.fail_after(PATIENCE):
        while True:
            try:
                (best, *_) = await ask(image=image, mime_type="image/png", width=SIZE[0], height=SIZE[1])
            except MachineError:
                await trio.sleep(0.2)  # the published calls have no events
                continue
            assert best["class_name"] == "disc"
            x_min, y_min, x_max, y_max = (best[f"{name}_normalized"] for name in ("x_min", "y_min", "x_max", "y_max"))
            return float(x_min), float(y_min), float(x_max), float(y_max)


@pytest.mark.limit(900)
async def test_from_boxes_to_a_detector_on_a_machine(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, running.client() as owner:
        organization, part = running.facts["organization"], await part_of(running)
        await with_sdk(running, lambda sdk: trained(sdk, organization, part["id"]))
        await owner.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=document(organization))
        folder = tmp_path / "machine"
        folder.mkdir()
        credentials: dict[str, Any] = {
            "id": part["id"],
            "secret": part["secret"],
            "app_address": f"http://{running.address}",
        }
        environment = {**os.environ, "MACHINE_HOME": str(folder / "home")}
        async with (
            server(folder, {"cloud": credentials}, "-disable-mdns", env=environment) as machine,
            Channel(machine.address, credentials=ApiKey(*running.key)) as channel,
        ):
            chance, overlaps = random.Random(5), []
            for _ in range(UNSEEN):
                image, edges = drawn(chance)
                overlaps.append(overlap(await best_box(ApiClient(channel), image), edges))
    assert min(overlaps) >= OVERLAP, overlaps
