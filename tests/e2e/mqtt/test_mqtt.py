"""A machine at a real MQTT broker: readings, states, Home Assistant's documents, commands, TLS and lost connections."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from tests.e2e.mqtt.broker import LIMIT_S, Broker, Listener, listening, mosquitto, needs_mosquitto
from tests.e2e.server.process import Server, server
from tests.helpers.waiting import until

pytestmark = needs_mosquitto
MOTOR = "viam.component.motor.v1.MotorService"
GENERIC = "viam.service.generic.v1.GenericService"
DEVICE = "cellar"


def document(port: int, *, scheme: str = "mqtt", **attributes: Any) -> dict[str, Any]:
    """Return a machine with a resource of each kind, and a bridge to a broker."""
    readings = {"temperature_c": 21.5, "wet": False, "where": {"shelf": "left"}, "list": [1]}
    return {
        "network": {"bind_address": "localhost:0"},
        "components": [
            {"name": "air", "api": "rdk:component:sensor", "model": "fake", "attributes": {"readings": readings}},
            {
                "name": "lamp",
                "api": "rdk:component:switch",
                "model": "fake",
                "attributes": {"labels": ["dark", "bright"]},
            },
            {"name": "fan", "api": "rdk:component:motor", "model": "fake"},
            {"name": "echo", "api": "rdk:component:generic", "model": "fake"},
            {"name": "broken", "api": "rdk:component:sensor", "model": "nothing"},
        ],
        "services": [
            {
                "name": "home",
                "api": "rdk:service:generic",
                "model": "mqtt",
                "attributes": {
                    "address": f"{scheme}://localhost:{port}",
                    "topic": DEVICE,
                    "publish": ["air", "broken"],
                    "commands": ["lamp", "fan"],
                    "interval_s": 0.5,
                    **attributes,
                },
            }
        ],
    }


@asynccontextmanager
async def home(folder: Path, **attributes: Any) -> AsyncIterator[tuple[Broker, Server, Listener]]:
    """Run a broker, a machine and a listener."""
    (folder / "machine").mkdir()
    async with (
        mosquitto(folder) as broker,
        listening(broker) as listener,
        server(folder / "machine", document(broker.port, **attributes), "-disable-mdns") as machine,
    ):
        await listener.until(f"{DEVICE}/lamp/status", lambda text: text == "online")
        yield broker, machine, listener


async def power(machine: Server) -> float:
    async with machine.client() as client:
        return float((await client.call(MOTOR, "fan", "is_powered"))["power_pct"])


async def test_readings_states_and_documents(tmp_path: Path) -> None:
    async with home(tmp_path) as (_, machine, listener):
        assert await listener.document(f"{DEVICE}/air/state") == {
            "temperature_c": 21.5,
            "wet": False,
            "where.shelf": "left",
        }
        assert await listener.document(f"{DEVICE}/lamp/state") == {"position": "dark"}
        assert await listener.until(f"{DEVICE}/broken/status") == "offline"
        assert await listener.until(f"{DEVICE}/status") == "online"
        names = [topic for topic in listener.newest if topic.startswith("homeassistant/sensor/")]
        temperature = await listener.document(next(name for name in names if "temperature" in name))
        assert temperature["state_topic"] == f"{DEVICE}/air/state"
        assert temperature["value_template"] == '{{ value_json["temperature_c"] }}'
        assert (temperature["unit_of_measurement"], temperature["device_class"]) == ("°C", "temperature")
        assert [place["topic"] for place in temperature["availability"]] == [f"{DEVICE}/status", f"{DEVICE}/air/status"]
        lamp = await listener.document(f"homeassistant/switch/{DEVICE}/lamp/config")
        assert (lamp["command_topic"], lamp["payload_on"]) == (f"{DEVICE}/lamp/set", "bright")
        assert await machine.stop() == 0
        assert await listener.until(f"{DEVICE}/status", lambda text: text == "offline")


async def test_commands(tmp_path: Path) -> None:
    async with home(tmp_path) as (broker, machine, listener):
        await broker.send(f"{DEVICE}/lamp/set", "bright")
        await listener.until(f"{DEVICE}/lamp/state", lambda text: json.loads(text) == {"position": "bright"})
        await broker.send(f"{DEVICE}/fan/set", "40")
        await listener.until(f"{DEVICE}/fan/state", lambda text: json.loads(text)["power_percent"] == 40)
        assert await power(machine) == pytest.approx(0.4)
        await broker.send(f"{DEVICE}/fan/set", "stop")
        await listener.until(f"{DEVICE}/fan/state", lambda text: json.loads(text)["power_percent"] == 0)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("lamp", "red", "send one of dark, bright"),
        ("fan", "1000", "a number from -100 to 100"),
        ("fan", "nan", "a number from -100 to 100"),
        ("fan", "9" * 2000, "1000 are allowed"),
        ("air", "1", "not among `commands`"),
    ],
)
async def test_refused_commands(tmp_path: Path, name: str, text: str, reason: str) -> None:
    async with home(tmp_path) as (broker, _, listener):
        await broker.send(f"{DEVICE}/{name}/set", text)
        assert reason in await listener.until(f"{DEVICE}/{name}/error")


async def test_commands_of_a_resource_are_answered(tmp_path: Path) -> None:
    async with home(tmp_path, do_commands=["echo", "fan"]) as (broker, _, listener):
        await broker.send(f"{DEVICE}/echo/do_command", '{"color": "red", "id": 7}')
        answer = await listener.document(f"{DEVICE}/echo/do_command/answer")
        assert answer == {"command": {"color": "red", "id": 7}, "result": {"color": "red", "id": 7}}
        for name, text, reason in (
            ("echo", "[1]", "not a JSON object"),
            ("echo", "[" * 5000, "not a JSON object"),
            ("echo", '{"a": "' + "9" * 20_000 + '"}', "16384 are allowed"),
        ):
            await broker.send(f"{DEVICE}/{name}/do_command", text)
            await listener.until(f"{DEVICE}/{name}/error", lambda error, reason=reason: reason in error)  # type: ignore[misc]
        await broker.send(f"{DEVICE}/lamp/do_command", "{}")
        await broker.send(f"{DEVICE}/echo/do_command", '{"last": true}')
        await listener.until(f"{DEVICE}/echo/do_command/answer", lambda text: "last" in text)
        assert f"{DEVICE}/lamp/do_command/answer" not in listener.newest


async def test_a_retained_command_is_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    async with mosquitto(tmp_path) as broker, listening(broker) as listener:
        await broker.send(f"{DEVICE}/fan/set", "100", retain=True)
        async with server(tmp_path / "machine", document(broker.port), "-disable-mdns") as machine:
            await listener.until(f"{DEVICE}/fan/status", lambda text: text == "online")
            await until(lambda: "a retained command was ignored" in machine.log())
            assert await power(machine) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_lost_broker_stops_what_it_commanded_and_is_found_again(tmp_path: Path, number: int) -> None:
    async with home(tmp_path) as (broker, machine, listener):
        await broker.send(f"{DEVICE}/fan/set", "100")
        await listener.until(f"{DEVICE}/fan/state", lambda text: json.loads(text)["power_percent"] == 100)
        await broker.stop(number)

        async def is_stopped() -> bool:
            return await power(machine) == 0

        await until(is_stopped)
        async with mosquitto(tmp_path, port=broker.port) as again, listening(again) as second:
            assert await second.document(f"{DEVICE}/air/state")
            await second.until(f"{DEVICE}/status", lambda text: text == "online")


async def test_documents_of_an_earlier_configuration_are_removed(tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    old = {
        "availability": [{"topic": f"{DEVICE}/status"}, {"topic": f"{DEVICE}/gone/status"}],
        "origin": {"name": "machine-server"},
    }
    stranger = {**old, "origin": {"name": "another program"}}
    async with mosquitto(tmp_path) as broker, listening(broker) as listener:
        await broker.send(f"homeassistant/sensor/{DEVICE}/gone/config", json.dumps(old), retain=True)
        await broker.send(f"homeassistant/sensor/{DEVICE}/strange/config", json.dumps(stranger), retain=True)
        await listener.until(f"homeassistant/sensor/{DEVICE}/strange/config")
        async with server(tmp_path / "machine", document(broker.port), "-disable-mdns"):
            await listener.until(f"homeassistant/sensor/{DEVICE}/gone/config", lambda text: not text)
            await listener.until(f"{DEVICE}/air/status", lambda text: text == "online")
        assert listener.newest[f"homeassistant/sensor/{DEVICE}/strange/config"]


async def test_home_assistant_that_starts_later_receives_the_documents_again(tmp_path: Path) -> None:
    async with home(tmp_path) as (broker, _, listener):
        topic = f"homeassistant/switch/{DEVICE}/lamp/config"
        await listener.until(topic)
        before = sum(name == topic for name, _ in listener.all)
        await broker.send("homeassistant/status", "online")
        with trio.fail_after(LIMIT_S):
            while sum(name == topic for name, _ in listener.all) == before:
                await listener.changed.wait()


async def test_tls_and_a_password(tmp_path: Path) -> None:
    authority = trustme.CA()
    pem = authority.issue_cert("localhost").private_key_and_cert_chain_pem
    pem.write_to_path(tmp_path / "server.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    await trio.run_process(["mosquitto_passwd", "-b", "-c", str(tmp_path / "passwords"), "rover", "secret word"])
    settings = [
        *("allow_anonymous false", f"password_file {tmp_path / 'passwords'}", f"cafile {tmp_path / 'ca.pem'}"),
        *(f"certfile {tmp_path / 'server.pem'}", f"keyfile {tmp_path / 'server.pem'}"),
    ]
    arguments = ["--cafile", str(tmp_path / "ca.pem"), "-u", "rover", "-P", "secret word"]
    login = {"username": "rover", "password": "secret word", "ca": str(tmp_path / "ca.pem")}
    (tmp_path / "machine").mkdir()
    async with mosquitto(tmp_path, settings=settings, arguments=arguments) as broker, listening(broker) as listener:
        good = document(broker.port, scheme="mqtts", **login)
        async with server(tmp_path / "machine", good, "-disable-mdns") as machine:
            assert await listener.document(f"{DEVICE}/air/state")
            assert "secret word" not in machine.log()
        for attributes, reason in (
            ({**login, "password": "wrong"}, "refuses the connection: not authorized"),
            ({**login, "ca": ""}, "certificate is not trusted"),
        ):
            bad = document(broker.port, scheme="mqtts", **attributes)
            async with server(tmp_path / "machine", bad, "-disable-mdns") as machine:
                await until(lambda machine=machine, reason=reason: reason in machine.log(), machine.log)


async def test_the_status_names_what_is_wrong(tmp_path: Path) -> None:
    async with home(tmp_path) as (_, machine, _), machine.client() as client:
        shown = await client.call(GENERIC, "home", "get_status")
        assert shown["topic"] == DEVICE
        assert shown["resources"]["air"] == "published"
        assert "no resource named 'broken' is ready" in shown["resources"]["broken"]


async def test_actuators_and_encoders(tmp_path: Path) -> None:
    names = {"wheel": "encoder", "rover": "base", "rail": "gantry", "reach": "arm", "hand": "gripper"}
    config = document(0)
    config["components"] += [
        {"name": name, "api": f"rdk:component:{subtype}", "model": "fake"} for name, subtype in names.items()
    ]
    (tmp_path / "machine").mkdir()
    async with mosquitto(tmp_path) as broker, listening(broker) as listener:
        config["services"][0]["attributes"] |= {
            "address": f"mqtt://localhost:{broker.port}",
            "publish": [],
            "commands": list(names),
        }
        async with server(tmp_path / "machine", config, "-disable-mdns"):
            states = {name: await listener.document(f"{DEVICE}/{name}/state") for name in names}
            assert {name: sorted(state) for name, state in states.items()} == {
                "wheel": ["position_ticks"],
                "rover": ["moving"],
                "rail": ["axis_1_mm", "axis_2_mm", "axis_3_mm", "moving"],
                "reach": [*(f"joint_{number}_deg" for number in range(1, 7)), "moving"],
                "hand": ["holding", "moving"],
            }
            grab = next(
                topic for topic in listener.newest if topic.startswith(f"homeassistant/button/{DEVICE}/hand_grab")
            )
            button = await listener.document(grab)
            assert (button["command_topic"], button["payload_press"]) == (f"{DEVICE}/hand/set", "grab")
            await broker.send(f"{DEVICE}/rail/set", "home")
            for name in names:
                await broker.send(f"{DEVICE}/{name}/set", "jump")
                refusal = await listener.until(f"{DEVICE}/{name}/error", lambda text: "jump" in text)
                assert "send " in refusal
