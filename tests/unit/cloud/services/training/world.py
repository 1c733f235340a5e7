"""A cloud with labelled pictures, for tests of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Final

from PIL import Image

from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.domain.training.abilities import Abilities
from cloud.server.memory import APP, MemoryCloud
from cloud.values.times import now
from rpc.api.client import ApiClient
from tests.unit.cloud.captured import DATA, SETS, Uploads

TRAINING: Final = "viam.app.mltraining.v1.MLTrainingService"
ABLE: Final = Abilities("", "", "python 3")


def able(cloud: MemoryCloud, abilities: Abilities = ABLE) -> MemoryCloud:
    """Return the same cloud with an engine."""
    return MemoryCloud(replace(cloud.cloud, training=abilities), cloud.first)


def picture(color: tuple[int, int, int], size: int = 16) -> bytes:
    """Return a PNG of one color."""
    file = BytesIO()
    Image.new("RGB", (size, size), color).save(file, "PNG")
    return file.getvalue()


@dataclass
class Tenant:
    """An organization with a machine and a dataset."""

    cloud: MemoryCloud
    client: ApiClient
    organization: str
    uploads: Uploads
    dataset: str
    count: int = 0

    async def add(self, label: str, color: tuple[int, int, int] = (1, 2, 3), number: int = 10) -> None:
        """Add different pictures with a label."""
        ids = []
        for _ in range(number):
            self.count += 1
            shade = (color[0], color[1], (color[2] + self.count) % 256)
            ids.append(await self.uploads.picture(self.count, picture(shade), mime_type="image/png"))
        if label:
            await self.call(DATA, "add_tags_to_binary_data_by_ids", tags=[label], binary_data_ids=ids)
        await self.call(DATA, "add_binary_data_to_dataset_by_ids", binary_data_ids=ids, dataset_id=self.dataset)

    async def call(self, service: str, method: str, **arguments: Any) -> Any:
        return await self.client.call(service, "", method, **arguments)

    async def submit(self, **changes: Any) -> str:
        """Submit a job with two labels."""
        values = {
            "organization_id": self.organization,
            "dataset_id": self.dataset,
            "model_name": "parts",
            "model_version": "1",
            "model_type": 1,
            "tags": ["ok", "bad"],
        }
        return str(await self.call(TRAINING, "submit_training_job", **{**values, **changes}))

    async def job(self, subject: str) -> Any:
        return await self.call(TRAINING, "get_training_job", id=subject)

    async def log(self, subject: str) -> list[str]:
        answer = await self.call(TRAINING, "get_training_job_logs", id=subject)
        return [entry["message"] for entry in answer["logs"]]


async def tenant(cloud: MemoryCloud, name: str = "") -> Tenant:
    """Return the first organization, or a new one called `name`, with a machine and an empty dataset."""
    first: FirstKey = cloud.first
    if name:
        first = await cloud.cloud.store.write(lambda sql: create_owner(sql, name, now()))
    client = cloud.client(first.id)
    robot = await client.call(APP, "", "new_robot", name="eye", location=first.location)
    part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
    dataset = await client.call(SETS, "", "create_dataset", name="set", organization_id=first.organization)
    return Tenant(cloud, client, first.organization, Uploads(cloud, part, first.id), dataset)
