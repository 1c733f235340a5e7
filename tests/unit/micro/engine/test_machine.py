from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from micro.engine.machine import MAX_COMPONENTS, milliseconds
from micro.wire import faults
from micro.wire.faults import CallFailure
from tests.unit.micro.bench import BOARD, MicroBench, component

READY, UNHEALTHY = 3, 5
MOTOR = component("motor", "left", "gpio", board="pins", pins={"a": "1", "b": "2"}, max_rpm=60)


async def test_components_that_cannot_run_have_a_reason_and_the_rest_runs() -> None:
    bench = MicroBench(
        component("motor", "early", "gpio", board="pins", pins={"dir": "5", "pwm": "6"}),  # before its board
        BOARD,
        component("camera", "eye", "webcam"),
        component("sensor", "other", "bme280"),
        component("motor", "odd", "gpio", board="pins", pins={"a": "1"}),
        component("motor", "lost", "gpio", board="nowhere", pins={"a": "1", "b": "2"}),
        component("base", "rover", "wheeled", left=["odd"], right=["early"], width_mm=1, wheel_circumference_mm=1),
        component("motor", "pinless", "gpio", board="pins", pins={"a": "99", "b": "2"}),
        component("servo", "negative", "gpio", board="pins", pin="3", frequency_hz=-1),
        {**component("motor", "first"), "depends_on": ["second"]},
        {**component("motor", "second"), "depends_on": ["rdk:component:motor/first"]},
        {"name": "modelless", "api": "rdk:component:motor"},
        component("sensor", "fine"),
    )
    states = bench.states()
    assert {name for name, (state, _) in states.items() if state == READY} == {"pins", "early", "fine"}
    reasons = {name: reason for name, (state, reason) in states.items() if state == UNHEALTHY}
    assert reasons == {
        "eye": "this server has no models of camera",
        "other": "this server has no model 'bme280' of sensor: it has lm75, sht3x, tmp102, gpio_input, host, fake",
        "odd": "attributes.pins has ['a']: use a and b, or a, b and pwm, or dir and pwm",
        "lost": "needs nowhere, which is not configured",
        "rover": "needs odd, which is unhealthy",
        "pinless": "there is no pin '99': pins are 0 to 63",
        "negative": "attributes.frequency_hz is -1: expected a number from 50 to 450",
        "first": "depends on itself through second",
        "second": "depends on itself through first",
        "modelless": "model is missing",
    }
    status = await bench.call("RobotService", "GetMachineStatus")
    assert {each["name"]["name"]: each["error"] for each in status["resources"] if each["error"]} == reasons
    names = await bench.call("RobotService", "ResourceNames")
    assert {each["name"] for each in names["resources"]} == {"pins", "early", "fine"}
    with pytest.raises(CallFailure, match="there is no motor 'eye'"):
        await bench.call("motor", "Stop", name="eye")
    with pytest.raises(CallFailure, match=r"odd is not ready: attributes\.pins") as caught:
        await bench.call("motor", "Stop", name="odd")
    assert caught.value.status == faults.UNAVAILABLE


@pytest.mark.parametrize(
    ("components", "line"),
    [
        (7, "components is not a list"),
        ([7], "components[0] is not an object"),
        ([{"api": "rdk:component:motor"}], "components[0] has no name"),
        ([{"name": "x" * 61, "api": "a"}], "components[0] has no name of at most 60"),
        ([{"name": "x"}], "components[0] has no api"),
        ([component("motor", "x"), component("sensor", "x")], "components[1] has the name 'x', which another one has"),
        ([component("motor", str(n)) for n in range(MAX_COMPONENTS + 1)], "components[32] is too many"),
    ],
)
async def test_broken_documents_are_reported(components: Any, line: str) -> None:
    bench = MicroBench(component("sensor", "before"))
    bench.machine.apply({"components": components}, "2")
    assert any(line in printed for printed in bench.lines)


async def test_unknown_attributes_and_sections_are_named() -> None:
    bench = MicroBench(
        component("motor", "m", "fake", max_rpm=5, control_parameters={"p": 1}), modules=[{}], services=[{"api": "x"}]
    )
    assert any("attributes.control_parameters is ignored" in line for line in bench.lines)
    assert any("modules: this server has none" in line for line in bench.lines)
    assert any("this server has none but data_manager" in line for line in bench.lines)


async def test_changes_restart_only_what_they_concern() -> None:
    bench = MicroBench(BOARD, MOTOR, component("sensor", "s"), component("encoder", "e"))
    before = {entry.key[1]: entry.resource for entry in bench.machine.entries}
    bench.apply(BOARD, {**MOTOR, "attributes": {**MOTOR["attributes"], "max_rpm": 70}}, component("sensor", "s"))
    after = {entry.key[1]: entry.resource for entry in bench.machine.entries}
    assert set(after) == {"pins", "left", "s"}
    assert [name for name in after if after[name] is before[name]] == ["pins", "s"]
    bench.apply(component("board", "pins", "esp32", pins={"x": "3"}), MOTOR, component("sensor", "s"))
    last = {entry.key[1]: entry.resource for entry in bench.machine.entries}
    assert [name for name in last if last[name] is after[name]] == ["s"], "a new board restarts its motor"
    assert "1" in bench.port.released


async def test_a_repaired_dependency_repairs_its_dependents() -> None:
    bench = MicroBench(MOTOR)
    assert bench.states()["left"][0] == UNHEALTHY
    bench.apply(MOTOR, BOARD)
    assert bench.states() == {"pins": (READY, ""), "left": (READY, "")}


async def test_a_broken_document_keeps_the_last_one() -> None:
    bench = MicroBench(BOARD, MOTOR)
    bench.machine.apply({"components": "nonsense"}, "2")
    assert bench.states()["left"] == (READY, "")


async def test_robot_calls() -> None:
    bench = MicroBench(component("sensor", "s"))
    assert (await bench.call("RobotService", "GetVersion"))["platform"] == "fake"
    with pytest.raises(CallFailure, match="not managed by a cloud"):
        await bench.call("RobotService", "GetCloudMetadata")
    bench.machine.cloud = {"id": "p", "location_id": "l"}
    reply = await bench.call("RobotService", "GetCloudMetadata")
    assert (reply["machine_part_id"], reply["location_id"]) == ("p", "l")
    await bench.call("RobotService", "Log", logs=[{"message": "hello", "level": "warn", "logger_name": "app"}])
    assert "warn app: hello" in bench.lines
    await bench.call("RobotService", "Shutdown")
    assert bench.machine.restart_at == bench.port.now() + 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (b"/viam.component.motor.v1.MotorService/Nothing", faults.UNIMPLEMENTED),
        (b"/viam.component.camera.v1.CameraService/GetImages", faults.UNIMPLEMENTED),
        (b"/viam.component.motor.v1.MotorService/__init__", faults.UNIMPLEMENTED),
        (b"nonsense", faults.UNIMPLEMENTED),
        (b"", faults.UNIMPLEMENTED),
        (b"/viam.component.motor.v1.MotorService/Stop", faults.NOT_FOUND),
    ],
)
async def test_unknown_calls(path: bytes, status: int) -> None:
    with pytest.raises(CallFailure) as caught:
        MicroBench().calls.call({b":path": path}, b"")
    assert caught.value.status == status


async def test_silent_sessions_stop_what_they_moved(autojump_clock: MockClock) -> None:
    bench = MicroBench(BOARD, MOTOR, component("motor", "right"), network={"sessions": {"heartbeat_window": "500ms"}})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.ticking)
        started = await bench.call("RobotService", "StartSession")
        assert started["heartbeat_window"] == {"seconds": 0, "nanos": 500_000_000}
        await bench.call("motor", "SetPower", sid=started["id"], name="left", power_pct=0.5)
        await bench.call("motor", "SetPower", name="right", power_pct=0.5)
        for _ in range(8):
            await trio.sleep(0.4)
            await bench.call("RobotService", "SendSessionHeartbeat", id=started["id"])
        assert bench.port.pwm["1"][0] == 0.5
        await trio.sleep(0.7)
        assert "1" not in bench.port.pwm
        assert (await bench.call("motor", "IsMoving", name="right"))["is_moving"], "no session moved it"
        with pytest.raises(CallFailure, match="SESSION_EXPIRED") as caught:
            await bench.call("motor", "SetPower", sid=started["id"], name="left", power_pct=0.5)
        assert caught.value.status == faults.INVALID
        nursery.cancel_scope.cancel()


async def test_sessions_are_bounded_and_owned() -> None:
    bench = MicroBench()
    first = await bench.call("RobotService", "StartSession", owner="a")
    with pytest.raises(CallFailure, match="SESSION_EXPIRED"):
        await bench.call("RobotService", "SendSessionHeartbeat", owner="b", id=first["id"])
    again = await bench.call("RobotService", "StartSession", owner="a", resume=first["id"])
    assert again["id"] == first["id"]
    for _ in range(7):
        await bench.call("RobotService", "StartSession", owner="a")
    with pytest.raises(CallFailure, match="8 sessions are open") as caught:
        await bench.call("RobotService", "StartSession", owner="a")
    assert caught.value.status == faults.EXHAUSTED


async def test_keys_and_tokens(autojump_clock: MockClock) -> None:
    bench = MicroBench(component("sensor", "s"))
    access = bench.machine.access
    access.set_keys({"id": "secret", "other": "sha256:" + "0" * 64})
    with pytest.raises(CallFailure) as caught:
        await bench.call("sensor", "GetReadings", name="s")
    assert caught.value.status == faults.UNAUTHENTICATED

    async def sign_in(key: str, kind: str = "api-key") -> str:
        credentials = {"type": kind, "payload": key}
        reply = await bench.call("AuthService", "Authenticate", entity="id", credentials=credentials)
        return str(reply["access_token"])

    token = await sign_in("secret")
    assert access.caller(b"Bearer " + token.encode()) == "id"
    for bad in (b"", b"Bearer ", b"Bearer " + token[:-1].encode(), token.encode()):
        with pytest.raises(CallFailure):
            access.caller(bad)
    async with trio.open_nursery() as nursery:
        for _ in range(10):

            async def try_it() -> None:
                with pytest.raises(CallFailure, match="not valid"):
                    await sign_in("wrong")

            nursery.start_soon(try_it)
        await trio.sleep(0.5)
        await sign_in("secret")  # clients with wrong keys do not keep others out
        begin = trio.current_time()
    assert trio.current_time() - begin == pytest.approx(0.5), "wrong keys are answered late"
    access.set_keys({"id": "changed"})
    with pytest.raises(CallFailure):
        access.caller(b"Bearer " + token.encode())


def test_times() -> None:
    assert [milliseconds(text) for text in ("2s", "500ms", "0.5s", 3)] == [2000, 500, 500, 3000]
    for bad in ("2", "x", None, "2m"):
        with pytest.raises(ValueError, match=r".*"):
            milliseconds(bad)
