"""Two or three real machine-servers that are each other's remotes; clients of one use the resources of the others."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from tests.e2e.server.process import Server, server

MOTOR, SENSOR, ROBOT = "rdk:component:motor", "rdk:component:sensor", "viam.robot.v1.RobotService"
KEY_ID, KEY = "11111111-2222-3333-4444-555555555555", "hush-hush-hush-hush"
LIMIT = 60.0  # seconds; generous, because the computer that runs the tests may be busy
SAME = {"network": {"bind_address": "localhost:0"}}  # as at the start, so that the port stays open
DRIVERS = "tests.e2e.server.drivers:Recorder"


def component(name: str, api: str, model: str = "fake", **more: Any) -> dict[str, Any]:
    return {"name": name, "api": api, "model": model, **more}


LEFT, AIR, OWN = component("left", MOTOR), component("air", SENSOR), component("own", SENSOR)


def remote(address: str, name: str = "pi", **more: Any) -> dict[str, Any]:
    return {"name": name, "address": address, **more}


def keys(key: str = KEY) -> dict[str, Any]:
    return {"handlers": [{"type": "api-key", "config": {KEY_ID: key, "keys": [KEY_ID]}}]}


def shown(key: str = KEY) -> dict[str, Any]:
    return {"entity": KEY_ID, "credentials": {"type": "api-key", "payload": key}}


@asynccontextmanager
async def running(folder: Path, document: dict[str, Any], **more: Any) -> AsyncIterator[Server]:
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240
    async with server(folder, document, running=True, **more) as result:
        yield result


def at(address: str) -> dict[str, Any]:
    """Return the network section of a machine that restarts at the same address."""
    return {"bind_address": f"localhost:{address.rpartition(':')[2]}"}


async def states(client: ApiClient) -> dict[str, tuple[str, str]]:
    status = await client.call(ROBOT, "", "get_machine_status")
    return {
        resource["name"].partition("/")[2]: (resource["state"], resource.get("error", ""))
        for resource in status["resources"]
    }


async def until(
    client: ApiClient, condition: Callable[[dict[str, tuple[str, str]]], bool]
) -> dict[str, tuple[str, str]]:
    """Wait until the states of the machine's resources and remotes satisfy a condition; return them."""
    values: dict[str, tuple[str, str]] = {}
    with trio.move_on_after(LIMIT):
        while True:
            values = await states(client)
            if condition(values):
                return values
            await trio.sleep(0.05)  # the published API has no stream of states
    raise AssertionError(values)


def ready(*names: str) -> Callable[[dict[str, tuple[str, str]]], bool]:
    return lambda result: all(result.get(name, ("",))[0] == "READY" for name in names)


async def refused(client: ApiClient, api: str, name: str, method: str, **arguments: Any) -> MachineError:
    with pytest.raises(MachineError) as caught:
        await client.call(api, name, method, **arguments)
    return caught.value


async def test_a_killed_remote_returns_with_another_configuration(tmp_path: Path) -> None:
    async with running(tmp_path / "pi", {"components": [LEFT, AIR]}) as pi:
        needy = component("needy", SENSOR, depends_on=["left"])
        document = {"components": [OWN, needy], "remotes": [remote(pi.address)]}
        async with running(tmp_path / "parent", document) as parent, parent.client() as client:
            await until(client, ready("pi:left", "pi:air", "own", "needy", "pi"))
            assert await client.call(SENSOR, "pi:air", "get_readings") == {"a": 1, "b": 2, "c": 3}
            await pi.stop(signal.SIGKILL)
            result = await until(client, lambda values: values["pi"][0] == "UNHEALTHY")
            assert ready("own", "needy")(result)
            error = await refused(client, SENSOR, "pi:air", "get_readings")
            assert error.kind is ErrorKind.UNAVAILABLE
            assert "remote 'pi' is not connected" in str(error)
            assert await client.call(SENSOR, "own", "get_readings") == {"a": 1, "b": 2, "c": 3}
            again = {"components": [LEFT, component("water", SENSOR)], "network": at(pi.address)}
            async with running(tmp_path / "pi", again):
                result = await until(client, lambda content: ready("pi", "pi:left", "pi:water", "needy")(content))
                await until(client, lambda item: "pi:air" not in item)
                assert await client.call(SENSOR, "water", "get_readings") == {"a": 1, "b": 2, "c": 3}
                log = parent.log()
                mine = [line for line in log.splitlines() if "resource_manager.rdk:component:sensor/needy" in line]
                # It waited for the remote, perhaps logged that, was ready once, and kept running.
                assert [line for line in mine if "\tready" in line] == mine[-1:], mine
                assert log.count("\tdisconnected") == 1, log


async def test_a_stopped_remote_delays_no_other_resource(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "pi", {"components": [LEFT, AIR]}) as pi,
        running(tmp_path / "parent", {"components": [OWN], "remotes": [remote(pi.address)]}) as parent,
        parent.client() as client,
    ):
        await until(client, ready("pi:air", "own"))
        pi.process.send_signal(signal.SIGSTOP)
        try:
            outcome: list[MachineError] = []
            meanwhile = 0

            async def call() -> None:
                outcome.append(await refused(client, SENSOR, "pi:air", "get_readings"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                with trio.fail_after(LIMIT):
                    while not outcome:
                        assert await client.call(SENSOR, "own", "get_readings") == {"a": 1, "b": 2, "c": 3}
                        meanwhile += 1
            assert meanwhile >= 10, "answers, in the 5 s that the remote is given"
            assert outcome[0].kind is ErrorKind.UNAVAILABLE
            result = await states(client)
            assert "no answer within 5 s" in result["pi"][1]
        finally:
            pi.process.send_signal(signal.SIGCONT)
        await until(client, ready("pi:air", "pi"))
        assert await client.call(SENSOR, "pi:air", "get_readings") == {"a": 1, "b": 2, "c": 3}
        assert await parent.stop() == 0


async def test_motors_stop_when_the_parent_is_killed(tmp_path: Path) -> None:
    events = tmp_path / "events"
    env = {"MACHINE_MODELS": DRIVERS, "TEST_EVENTS": str(events)}
    wheel = component("wheel", MOTOR, "test:server:recorder")
    async with running(tmp_path / "pi", {"components": [wheel]}, env=env) as pi:
        async with running(tmp_path / "parent", {"remotes": [remote(pi.address)]}) as parent, parent.client() as client:
            await until(client, ready("pi:wheel"))
            await client.call(MOTOR, "wheel", "set_power", power_pct=0.5)
            killed = time.monotonic()
            await parent.stop(signal.SIGKILL)
        stopped = 0.0
        with trio.fail_after(LIMIT):
            while not stopped:
                lines = [line.split() for line in events.read_text().splitlines()]
                stopped = next((float(when) for when, what, _ in lines if what == "stop"), 0.0)
                await trio.sleep(0.02)
        print(f"stopped {stopped - killed:.1f} s after the kill; the window is 2 s since the last sign of life")


async def test_keys(tmp_path: Path) -> None:
    async with running(tmp_path / "pi", {"components": [AIR], "auth": keys()}) as pi:
        document = {"components": [OWN], "remotes": [remote(pi.address, auth=shown("wrong-wrong-wrong"))]}
        async with running(tmp_path / "parent", document) as parent, parent.client() as client:
            result = await until(
                client, lambda values: values["pi"][0] == "UNHEALTHY" and "reach" not in values["pi"][1]
            )
            assert "credentials" in result["pi"][1]
            assert "pi:air" not in result
            parent.write({**document, **SAME, "remotes": [remote(pi.address, auth=shown())]})
            await until(client, ready("pi:air", "own"))
            assert await client.call(SENSOR, "pi:air", "get_readings") == {"a": 1, "b": 2, "c": 3}
            for secret in ("wrong-wrong", KEY):
                assert secret not in parent.log() + pi.log()
            # The keys of the remote change while it runs: access is denied, with a reason.
            pi.write({**SAME, "components": [AIR], "auth": keys("another-another-another")})
            await until(client, lambda content: content["pi"][0] == "UNHEALTHY")
            error = await refused(client, SENSOR, "pi:air", "get_readings")
            assert error.kind is ErrorKind.UNAVAILABLE  # not UNAUTHENTICATED: the caller's own key is valid


async def test_a_remote_at_another_address(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "one", {"components": [AIR]}) as first,
        running(tmp_path / "two", {"components": [component("water", SENSOR)]}) as two,
        running(tmp_path / "parent", {"components": [OWN], "remotes": [remote(first.address)]}) as parent,
        parent.client() as client,
    ):
        await until(client, ready("pi:air"))
        parent.write({**SAME, "components": [OWN], "remotes": [remote(two.address)]})
        result = await until(client, lambda values: ready("pi:water")(values) and "pi:air" not in values)
        assert ready("own", "pi")(result)
        parent.write({**SAME, "components": [OWN], "remotes": []})
        await until(client, lambda content: set(content) == {"own"})


async def test_over_tls(tmp_path: Path, certificate: dict[str, str]) -> None:
    network = {"bind_address": "localhost:0", **{key: certificate[key] for key in ("tls_cert_file", "tls_key_file")}}
    env = {"SSL_CERT_FILE": certificate["ca_file"]}
    async with running(tmp_path / "pi", {"components": [AIR], "network": network, "auth": keys()}) as pi:
        host = pi.address
        remotes = [remote(host, auth=shown()), remote(f"https://{host}", "same", auth=shown())]
        async with running(tmp_path / "parent", {"remotes": remotes}, env=env) as parent, parent.client() as client:
            await until(client, ready("pi:air", "same:air"))
            assert await client.call(SENSOR, "pi:air", "get_readings") == {"a": 1, "b": 2, "c": 3}
        async with running(tmp_path / "other", {"remotes": [remote(host)]}) as other, other.client() as client:
            result = await until(client, lambda values: values["pi"][0] == "UNHEALTHY")
            assert "certificate is not trusted" in result["pi"][1]
            assert "SSL_CERT_FILE" in result["pi"][1]


async def test_a_chain_of_three_and_a_cycle(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "deck", {"components": [component("crane", MOTOR)]}) as deck,
        running(tmp_path / "pi", {"components": [LEFT], "remotes": [remote(deck.address, "deck")]}) as pi,
        running(tmp_path / "parent", {"components": [OWN], "remotes": [remote(pi.address)]}) as parent,
        parent.client() as client,
    ):
        await until(client, ready("pi:left", "pi:deck:crane"))
        await client.call(MOTOR, "crane", "set_power", power_pct=0.5)
        async with deck.client() as direct:
            assert await direct.call(MOTOR, "crane", "is_moving") is True
        # The last machine uses the first as its remote: each machine sees every other once.
        circle = {"components": [component("crane", MOTOR)], "remotes": [remote(parent.address, "top")]}
        deck.write({**circle, **SAME})
        async with deck.client() as direct:
            await until(direct, ready("crane", "top:own", "top:pi:left"))
        result = await until(client, ready("pi:left", "pi:deck:crane", "own"))
        assert not [name for name in result if name.endswith(":own") or name.count(":") > 2], result
        await pi.stop(signal.SIGKILL)
        await until(client, lambda values: values["pi:deck:crane"][0] == values["pi:left"][0] == "UNHEALTHY")


async def test_a_missing_remote_is_reported_everywhere(tmp_path: Path) -> None:
    needy = component("needy", SENSOR, depends_on=["pi:left"])
    document = {"components": [OWN, needy], "remotes": [remote("127.0.0.1:1")]}
    async with running(tmp_path / "parent", document) as parent, parent.client() as client:
        result = await until(client, lambda values: values["pi"][0] == "UNHEALTHY")
        assert result["pi"][1] == "cannot connect to 127.0.0.1:1: Connection refused"
        assert "the remote 'pi' is not connected: cannot connect to 127.0.0.1:1" in result["needy"][1]
        assert ready("own")(result)
        machine = str(Path(sys.executable).with_name("machine"))
        with trio.fail_after(LIMIT):
            said = await trio.run_process(
                [machine, "status", "--address", parent.address], capture_stdout=True, check=False
            )
        assert "cannot connect to 127.0.0.1:1" in said.stdout.decode()


SCRIPT = """
import asyncio, sys
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from tests.e2e.sdk.client import plaintext

async def main():
    robot = await RobotClient.at_address(sys.argv[1], plaintext())
    print(sorted(name.name for name in robot.resource_names))
    print(sorted((await Sensor.from_robot(robot, "pi:air").get_readings()).items()))
    motor = Motor.from_robot(robot, "left")  # the SDK itself finds pi:left
    await motor.set_power(0.5)
    print(await motor.is_moving(), (await motor.is_powered())[1])
    await robot.stop_all()
    print(await Motor.from_robot(robot, "pi:left").is_moving())
    await robot.close()

asyncio.run(main())
"""


async def test_the_official_sdk_and_the_command_line_use_resources_of_the_remote(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "pi", {"components": [LEFT, AIR]}) as pi,
        running(tmp_path / "parent", {"components": [OWN], "remotes": [remote(pi.address)]}) as parent,
    ):
        with trio.fail_after(60):
            done = await trio.run_process([sys.executable, "-c", SCRIPT, parent.address], capture_stdout=True)
            machine = [str(Path(sys.executable).with_name("machine")), "call", "--address", parent.address]
            for name in ("pi:air", "air", f"{SENSOR}/air"):
                said = await trio.run_process([*machine, name, "get_readings"], capture_stdout=True)
                assert '"a": 1.0' in said.stdout.decode()
    assert done.stdout.decode().splitlines() == [
        "['own', 'pi:air', 'pi:left']",
        "[('a', 1.0), ('b', 2.0), ('c', 3.0)]",
        "True 0.5",
        "False",
    ]
