"""A module of the official SDK with one sensor: a door, whose state is stored in a file."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from viam.components.sensor import Sensor
from viam.module.module import Module
from viam.proto.app.robot import ComponentConfig
from viam.resource.easy_resource import EasyResource
from viam.utils import struct_to_dict


class Door(Sensor, EasyResource):
    MODEL: ClassVar[Any] = "acme:demo:door"

    @classmethod
    def validate_config(cls, config: ComponentConfig) -> tuple[Sequence[str], Sequence[str]]:
        return [], []

    @classmethod
    def new(cls, config: ComponentConfig, dependencies: Mapping[Any, Any]) -> "Door":
        door = super().new(config, dependencies)
        door.path = Path(struct_to_dict(config.attributes)["path"])
        return door

    async def get_readings(self, **kwargs: Any) -> Mapping[str, Any]:
        readings: Mapping[str, Any] = json.loads(self.path.read_text())
        return readings


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
