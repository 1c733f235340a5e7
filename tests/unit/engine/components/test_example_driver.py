"""The driver shown in docs/howto/write-a-driver.md."""

import importlib.util
import re
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import structlog

from engine.apis import BASES
from engine.components.sensing.sensor import Sensor
from engine.resource import Context
from hal.sim import World
from hal.sim.hardware import SimHardware
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from rpc.api.server.router import ApiRouter
from schema.errors import ErrorKind, MachineError
from schema.names import ResourceName

ROOT = Path(__file__).resolve().parents[4]
FILE = ROOT / "examples" / "drivers" / "thermometer.py"
NAME = ResourceName(Sensor.API, "cpu")


def thermometer(**attributes):
    spec = importlib.util.spec_from_file_location("thermometer", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cls = module.Thermometer
    config = msgspec.convert(attributes, cls.Config)
    return cls(Context(NAME, config, {}, World(), SimHardware(World()), structlog.stdlib.get_logger("test")))


class Target:
    def __init__(self, result):
        self.result = result

    @asynccontextmanager
    async def call(self, request):
        yield self.result


def client_of(result):
    return ApiClient(MemoryChannel(ApiRouter(Target(result), bases=BASES)))


async def test_reading(tmp_path):
    file = tmp_path / "temp"
    file.write_text("48500\n")
    driver = thermometer(file=str(file), offset_c=-0.5)
    assert await client_of(driver).call(Sensor.API, "cpu", "get_readings") == {"temperature_c": 48.0}
    assert str(driver.MODEL) == "acme:demo:thermometer"


@pytest.mark.parametrize("content", [None, "hot"])
async def test_no_reading(tmp_path, content):
    file = tmp_path / "temp"
    if content is not None:
        file.write_text(content)
    with pytest.raises(MachineError, match="no temperature") as caught:
        await client_of(thermometer(file=str(file))).call(Sensor.API, "cpu", "get_readings")
    assert caught.value.kind is ErrorKind.UNAVAILABLE


def test_it_is_short_and_the_page_shows_it_as_it_is():
    source = FILE.read_text()
    assert len(source.splitlines()) < 40
    page = (ROOT / "docs" / "howto" / "write-a-driver.md").read_text()
    shown = re.search(r"```python\n(.*?)```", page, re.S)
    assert shown is not None
    assert shown[1] == source
