"""Pins of boards at a real MQTT broker: switches, analog readers and interrupts that are named, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio

from tests.e2e.mqtt.broker import LIMIT_S, Listener, listening, mosquitto, needs_mosquitto
from tests.e2e.mqtt.test_mqtt import DEVICE, document
from tests.e2e.server.process import server

pytestmark = needs_mosquitto
BOARD = "viam.component.board.v1.BoardService"


def board(name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": "rdk:component:board", "model": model, "attributes": attributes}


async def messages(listener: Listener, topic: str, count: int) -> None:
    """Wait for more messages with a topic."""
    target = sum(name == topic for name, _ in listener.all) + count
    with trio.fail_after(LIMIT_S):
        while sum(name == topic for name, _ in listener.all) < target:
            await listener.changed.wait()


async def test_pins_of_a_board(tmp_path: Path) -> None:
    analogs, interrupts = [{"name": "light", "pin": "5"}], [{"name": "door", "pin": "7"}]
    (tmp_path / "machine").mkdir()
    async with mosquitto(tmp_path) as broker, listening(broker) as listener:
        config = document(broker.port, pins={"pi": ["37", "light", "door"], "rear": ["no-such-pin"]})
        config["components"] += [
            board("pi", "fake", analogs=analogs, digital_interrupts=interrupts),
            board("rear", "linux", board="raspberry-pi-4"),
        ]
        async with server(tmp_path / "machine", config, "-disable-mdns") as machine:
            assert await listener.document(f"{DEVICE}/pi/37/state") == {"state": "OFF"}
            assert (await listener.document(f"{DEVICE}/pi/light/state"))["value"] < 100
            assert await listener.document(f"{DEVICE}/pi/door/state") == {"count": 0}
            kinds = {
                json.loads(text)["name"]: topic.split("/")[1]
                for topic, text in listener.newest.items()
                if topic.startswith("homeassistant/") and '"name": "pi ' in text
            }
            assert kinds == {"pi 37": "switch", "pi light": "sensor", "pi door count": "sensor"}
            for text in ("ON", "OFF"):
                await broker.send(f"{DEVICE}/pi/37/set", text)
                state = json.dumps({"state": text})
                await listener.until(f"{DEVICE}/pi/37/state", lambda newest, state=state: newest == state)  # type: ignore[misc]
            await broker.send(f"{DEVICE}/pi/light/set", "ON")
            assert "has no commands" in await listener.until(f"{DEVICE}/pi/light/error")
            await listener.until(f"{DEVICE}/rear/no-such-pin/status", lambda status: status == "offline")
            await messages(listener, f"{DEVICE}/pi/37/state", 3)
            assert machine.log().count("a pin cannot be published") == 1
            assert "no pin, analog reader or digital interrupt named 'no-such-pin'" in machine.log()


async def test_pins_that_are_not_named_are_not_published(tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    async with mosquitto(tmp_path) as broker, listening(broker) as listener:
        config = document(broker.port, publish=["air", "pi"], commands=["lamp", "fan", "pi"], pins={"pi": ["36"]})
        config["components"].append(board("pi", "fake"))
        async with server(tmp_path / "machine", config, "-disable-mdns") as machine:
            await listener.until(f"{DEVICE}/pi/status", lambda text: text == "offline")
            for topic in ("pi/37", "pi"):
                await broker.send(f"{DEVICE}/{topic}/set", "ON")
            assert "no resource named 'pi' is ready" in await listener.until(f"{DEVICE}/pi/error")
            await broker.send(f"{DEVICE}/pi/36/set", "ON")
            await listener.until(f"{DEVICE}/pi/36/state", lambda text: '"ON"' in text)
            async with machine.client() as client:
                levels = [await client.call(BOARD, "pi", "get_gpio", pin=pin) for pin in ("36", "37")]
            assert levels == [True, False]
            assert f"{DEVICE}/pi/37/state" not in listener.newest
