"""Helpers that upload and query data in tests of captured data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from cloud.blobs import sizes
from cloud.domain.upkeep.sweep import Swept, sweep
from cloud.server.memory import MemoryCloud
from cloud.values.times import now

SYNC = "viam.app.datasync.v1.DataSyncService"
DATA = "viam.app.data.v1.DataService"
SETS = "viam.app.dataset.v1.DatasetService"
START = datetime(2026, 1, 1, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def at(number: float) -> datetime:
    return START + timedelta(seconds=number)


def piece(number: float, **fields: Any) -> dict[str, Any]:
    """Return a reading captured `number` seconds after START and received half a second later."""
    return {"metadata": {"time_requested": at(number), "time_received": at(number + 0.5)}, "struct": fields}


class Uploads:
    """Uploads of one part, and queries of its owner."""

    def __init__(self, cloud: MemoryCloud, part: str, owner: str = "") -> None:
        self.cloud = cloud
        self.part = part
        self.machine = cloud.client(part, "robot-secret")
        self.owner = cloud.client(owner)

    async def readings(self, *pieces: dict[str, Any], **metadata: Any) -> str:
        defaults = {
            "part_id": self.part,
            "component_type": "rdk:component:sensor",
            "component_name": "s",
            "method_name": "Readings",
            "type": "TABULAR_SENSOR",
        }
        sent = await self.machine.call(
            SYNC, "", "data_capture_upload", metadata={**defaults, **metadata}, sensor_contents=list(pieces)
        )
        return str(sent["file_id"])

    async def file(self, content: bytes = b"content", name: str = "a.txt", **more: Any) -> str:
        sent = await self.machine.call(
            SYNC,
            "",
            "file_upload",
            part_id=self.part,
            type="FILE",
            file_name=name,
            contents=[{"data": content}],
            **more,
        )
        return str(sent["binary_data_id"])

    async def picture(self, number: int, content: bytes = PNG, **metadata: Any) -> str:
        defaults = {
            "part_id": self.part,
            "component_type": "camera",
            "component_name": "eye",
            "method_name": "GetImages",
            "type": "BINARY_SENSOR",
        }
        times = {"time_requested": at(number), "time_received": at(number)}
        sent = await self.machine.call(
            SYNC,
            "",
            "data_capture_upload",
            metadata={**defaults, **metadata},
            sensor_contents=[{"metadata": times, "binary": content}],
        )
        return str(sent["binary_data_id"])

    async def ask(self, method: str, **arguments: Any) -> Any:
        return await self.owner.call(DATA, "", method, **arguments)

    async def ids(self, **fields: Any) -> list[str]:
        """Return the ids of the files that match a filter."""
        answer = await self.ask("binary_data_by_filter", data_request={"filter": fields, "limit": 1000})
        return [file["metadata"]["binary_data_id"] for file in answer["data"]]

    async def values(self, **text: Any) -> list[Any]:
        """Return the readings that match a filter."""
        answer = await self.ask("tabular_data_by_filter", data_request={"filter": text, "limit": 1000})
        return [row["data"] for row in answer["data"]]


async def days_later(cloud: MemoryCloud, days: float = 7.1) -> Swept:
    """Run the sweep as if `days` days had passed."""
    return await sweep(cloud.cloud.store, cloud.cloud.blobs, now() + timedelta(days=days))


async def blobs(cloud: MemoryCloud) -> set[str]:
    """Return the keys of the stored blobs."""
    return set(await sizes(cloud.cloud.blobs))
