"""The module's side of the protocol, in the order in which a machine calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.components.sensing.sensor import Sensor
from rpc.api.client import ApiClient
from rpc.api.memory import MemoryChannel
from runtime.sdk.parent import ASK_LIMIT, AnyResource
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.sdk.drivers import Drive, Follower, Mean, Pins, Thermometer, history
from tests.unit.runtime.sdk.harness import GENERIC, MOTOR, PLAIN, SENSOR, Running, config, open_module

BOARD = "rdk:component:board"


@pytest.fixture(autouse=True)
def fresh() -> None:
    history.clear()


async def readings(running: Running, name: str = "air") -> Any:
    return await running.calls.call(SENSOR, name, "get_readings")


async def test_it_says_what_it_offers_and_meets_its_machine_once(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer, Mean, Drive, introduced=False) as running:
        running.module.parent.introduce("/first")
        running.module.parent.introduce("/elsewhere")
        answer = await running.introduce()
        await wait_all_tasks_blocked()
    assert answer["ready"] is True
    assert {
        (handler["subtype"]["subtype"], handler["subtype"]["proto_service"], *handler["models"])
        for handler in answer["handlermap"]["handlers"]
    } == {
        ("rdk:component:sensor", "viam.component.sensor.v1.SensorService", "acme:demo:thermometer"),
        ("rdk:component:generic", "viam.component.generic.v1.GenericService", "acme:demo:mean"),
        ("rdk:component:motor", "viam.component.motor.v1.MotorService", "acme:demo:drive"),
    }
    assert running.dialled == ["/first"]


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"offset": "warm"}, "attributes.offset"),
        ({"offset": 101}, "offset is above 100"),
        ({"count": 1.5}, "attributes.count"),
    ],
)
async def test_attributes_are_checked_with_their_place(
    autojump_clock: MockClock, attributes: dict[str, Any], words: str
) -> None:
    async with open_module(Thermometer) as running:
        with pytest.raises(MachineError, match=words) as caught:
            await running.ask("validate_config", config=config(SENSOR, "air", "acme:demo:thermometer", **attributes))
        assert caught.value.kind is ErrorKind.INVALID


async def test_required_and_optional_dependencies_are_distinguished(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer, Mean) as running:

        async def asked(**attributes: Any) -> Any:
            return await running.ask("validate_config", config=config(GENERIC, "m", "acme:demo:mean", **attributes))

        assert await asked(sensor="a", other="b") == {"dependencies": ["a"], "optional_dependencies": ["b"]}
        with pytest.raises(MachineError, match=r"cannot read its attributes: RuntimeError\('boom'\)"):
            await asked(sensor="explode")
        with pytest.raises(MachineError, match=r"no model acme:demo:men .*use acme:demo:thermometer"):
            await running.ask("validate_config", config=config(GENERIC, "m", "acme:demo:men"))


async def test_a_resource_lives_from_adding_to_removing(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer", offset=1, count=3.0)
        assert await readings(running) == {"temperature_c": 21.5}
        await running.remove(SENSOR, "air")
        assert history == ["start air", "stop air"]
        with pytest.raises(MachineError) as caught:
            await readings(running)
        assert caught.value.kind is ErrorKind.NOT_FOUND
        with pytest.raises(MachineError, match="this module has no resource"):
            await running.remove(SENSOR, "air")


async def test_reconfiguring_rebuilds_the_resource_and_its_dependents(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer, Mean) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer")
        await running.add(GENERIC, "mean", "acme:demo:mean", [f"{SENSOR}/air"], sensor="air")
        await running.ask(
            "reconfigure_resource", config=config(SENSOR, "air", "acme:demo:thermometer", offset=2), dependencies=[]
        )
        assert await readings(running) == {"temperature_c": 22.5}
        await running.module.graph.settled()
        assert await running.calls.call(GENERIC, "mean", "do_command", command={}) == {"temperature_c": 22.5}
    assert history == [
        "start air",
        "start mean",
        "stop mean",
        "stop air",
        "start air",
        "start mean",
        "stop mean",
        "stop air",
    ]


async def test_resources_of_the_machine_are_dependencies_of_their_type(autojump_clock: MockClock) -> None:
    async with open_module(Mean) as running:
        await running.add(GENERIC, "mean", "acme:demo:mean", [f"{SENSOR}/plain"], sensor="plain")
        assert await running.calls.call(GENERIC, "mean", "do_command", command={}) == {"a": 1, "b": 2, "c": 3}
        driver = running.module.resources.find(f"{GENERIC}/mean").resource
        assert isinstance(driver.dependency(Sensor, "plain"), Sensor)
        with pytest.raises(MachineError, match="no sensor named 'other' among its dependencies"):
            driver.dependency(Sensor, "other")


async def test_a_resource_of_an_api_without_a_class_is_called_by_method_names(autojump_clock: MockClock) -> None:
    async with open_module(Follower) as running:
        await running.add(GENERIC, "follower", "acme:demo:follower", ["rdk:service:video/away"])
        driver = running.module.resources.find(f"{GENERIC}/follower").resource
        away = driver.dependency(AnyResource, "away")
        for call in (away.call("get_status"), away.do_command({"a": 1})):
            with pytest.raises(MachineError) as caught:  # the machine in memory answered: it has no such resource
                await call
            assert caught.value.kind is ErrorKind.UNSUPPORTED
        with pytest.raises(MachineError, match="has no method 'get_positions'") as caught:
            await away.call("get_positions")
        assert caught.value.kind is ErrorKind.INVALID


async def test_a_resource_of_the_machine_that_fails_says_so_as_a_client_reads_it(autojump_clock: MockClock) -> None:
    async with open_module(Mean, machine={"components": [PLAIN]}) as running:
        await running.add(GENERIC, "mean", "acme:demo:mean", [f"{SENSOR}/plain"], sensor="plain")
        running.parent.write({"components": []})
        await running.parent.graph.settled()
        with pytest.raises(MachineError) as caught:
            await running.calls.call(GENERIC, "mean", "do_command", command={})
        assert caught.value.kind is ErrorKind.NOT_FOUND
        running.parent.write({"components": [PLAIN]})
        await running.parent.graph.settled()


@pytest.mark.parametrize(
    ("attributes", "words", "kind"),
    [
        ({"fail": "constructor"}, "RuntimeError: the thermometer is broken", ErrorKind.INTERNAL),
        ({"fail": "run"}, "no thermometer there: plug it in", ErrorKind.PRECONDITION),
        ({"offset": 500}, "offset is above 100", ErrorKind.INVALID),
    ],
)
async def test_a_resource_that_cannot_be_built_is_not_kept(
    autojump_clock: MockClock, attributes: dict[str, Any], words: str, kind: ErrorKind
) -> None:
    async with open_module(Thermometer) as running:
        with pytest.raises(MachineError, match=words) as caught:
            await running.add(SENSOR, "air", "acme:demo:thermometer", **attributes)
        assert caught.value.kind is kind
        await running.module.graph.settled()
        assert set(running.module.graph.snapshot().nodes) == {"internal/parent"}
        begun = len(history)
        await trio.sleep(60)
        assert len(history) == begun, "it is not tried again by itself"
        await running.add(SENSOR, "air", "acme:demo:thermometer")
        assert await readings(running) == {"temperature_c": 20.5}


async def test_adding_that_is_cancelled_leaves_nothing(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        with trio.move_on_after(5) as limit:
            await running.add(SENSOR, "air", "acme:demo:thermometer", slow_s=1000)
        assert limit.cancelled_caught
        await running.module.graph.settled()
        assert history == ["start air", "stop air"]
        assert set(running.module.graph.snapshot().nodes) == {"internal/parent"}


async def test_adding_twice_means_the_second(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self_after, 1, running)
            with pytest.raises(MachineError, match="was removed or replaced") as caught:
                await running.add(SENSOR, "air", "acme:demo:thermometer", slow_s=100)
            assert caught.value.kind is ErrorKind.CANCELLED
        assert await readings(running) == {"temperature_c": 27.5}


async def self_after(seconds: float, running: Running) -> None:
    await trio.sleep(seconds)
    await running.add(SENSOR, "air", "acme:demo:thermometer", offset=7)


async def test_a_resource_that_fails_later_restarts_and_its_callers_get_an_error(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer")
        with pytest.raises(MachineError) as caught:
            await running.calls.call(SENSOR, "air", "do_command", command={})
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        with pytest.raises(MachineError, match=r"unhealthy: .*it was unplugged") as caught:
            await readings(running)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        await trio.sleep(2)
        assert await readings(running) == {"temperature_c": 20.5}


async def test_moving_resources_are_stopped_before_they_end(autojump_clock: MockClock) -> None:
    async with open_module(Drive) as running:
        await running.add(MOTOR, "left", "acme:demo:drive")
        await running.calls.call(MOTOR, "left", "set_power", power_pct=0.5)
        assert (await running.calls.call(MOTOR, "left", "is_powered")) == {"is_on": True, "power_pct": 0.5}
        await running.remove(MOTOR, "left")
        assert history == ["at rest"]
        with pytest.raises(MachineError) as caught:
            await running.calls.call(MOTOR, "left", "go_to", rpm=1, position_revolutions=1)
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_methods_that_a_driver_lacks_are_unsupported(autojump_clock: MockClock) -> None:
    async with open_module(Drive) as running:
        await running.add(MOTOR, "left", "acme:demo:drive")
        with pytest.raises(MachineError, match=r"acme:demo:drive.*does not implement go_to") as caught:
            await running.calls.call(MOTOR, "left", "go_to", rpm=1, position_revolutions=1)
        assert caught.value.kind is ErrorKind.UNSUPPORTED


async def test_a_stream_ends_with_its_client_and_with_its_resource(autojump_clock: MockClock) -> None:
    async with open_module(Pins) as running:
        await running.add(BOARD, "pins", "acme:demo:pins")
        async with aclosing(running.calls.stream(BOARD, "pins", "stream_ticks", pin_names=["a"])) as ticks:
            assert [(await anext(ticks))["high"] for _ in range(3)] == [False, True, False]
        await wait_all_tasks_blocked()
        assert history == ["ticks begin", "ticks end"]
        async with trio.open_nursery() as nursery:
            async with aclosing(running.calls.stream(BOARD, "pins", "stream_ticks", pin_names=["a"])) as ticks:
                await anext(ticks)
                nursery.start_soon(running.remove, BOARD, "pins")
                with pytest.raises(MachineError) as caught:
                    async for _ in ticks:
                        pass
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert history[2:] == ["ticks begin", "ticks end"]


async def test_dependents_stop_first_when_the_module_stops(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer, Mean) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer")
        await running.add(GENERIC, "mean", "acme:demo:mean", [f"{SENSOR}/air"], sensor="air")
        running.module.stop("SIGTERM")
        await running.stopped.wait()
        assert history[2:] == ["stop mean", "stop air"]


async def test_removing_a_dependency_stops_its_dependents_first(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer, Mean) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer")
        await running.add(GENERIC, "mean", "acme:demo:mean", [f"{SENSOR}/air"], sensor="air")
        await running.remove(SENSOR, "air")
        assert history[2:] == ["stop mean", "stop air"]


async def test_a_stop_ends_adding_at_once(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        async with trio.open_nursery() as nursery:
            begin = trio.current_time()
            nursery.start_soon(stop_after, 1, running)
            with pytest.raises(MachineError, match="was not ready yet: SIGTERM") as caught:
                await running.add(SENSOR, "air", "acme:demo:thermometer", slow_s=1000)
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert trio.current_time() - begin == 1
        await running.stopped.wait()


async def stop_after(seconds: float, running: Running) -> None:
    await trio.sleep(seconds)
    running.module.stop("SIGTERM")


async def test_it_ends_with_its_machine(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer")
        running.parent_gone.set()
        await running.stopped.wait()
        assert history == ["start air", "stop air"]


async def test_it_ends_when_no_machine_ever_asks(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer, introduced=False) as running:
        begin = trio.current_time()
        await running.stopped.wait()
        assert trio.current_time() - begin == pytest.approx(ASK_LIMIT)


async def test_before_the_machine_has_asked_its_resources_are_unavailable(autojump_clock: MockClock) -> None:
    async with open_module(Mean, introduced=False) as running:
        await running.add(GENERIC, "mean", "acme:demo:mean", [f"{SENSOR}/plain"], sensor="plain")
        with pytest.raises(MachineError, match="has not introduced itself") as caught:
            await running.calls.call(GENERIC, "mean", "do_command", command={})
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        await running.introduce()
        await wait_all_tasks_blocked()
        assert (await running.calls.call(GENERIC, "mean", "do_command", command={}))["a"] == 1


@pytest.mark.parametrize("dependency", ["plain", "rdk:sensor/plain", ""])
async def test_dependencies_must_be_full_names(autojump_clock: MockClock, dependency: str) -> None:
    async with open_module(Mean) as running:
        with pytest.raises(MachineError, match="dependencies") as caught:
            await running.add(GENERIC, "mean", "acme:demo:mean", [dependency], sensor="plain")
        assert caught.value.kind is ErrorKind.INVALID


class Questions:
    """The server's side of a call with a sequence of requests."""

    def __init__(self, *questions: Any) -> None:
        self.questions = questions
        self.answers: list[Any] = []

    async def __aiter__(self) -> AsyncIterator[Any]:
        for question in self.questions:
            yield question

    async def send_message(self, answer: Any) -> None:
        self.answers.append(answer)


async def test_reflection_knows_what_is_served(autojump_clock: MockClock) -> None:
    from grpclib.reflection.v1 import reflection_pb2 as reflection

    async with open_module(Thermometer) as running:
        handler = running.module.router.get("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        assert handler is not None
        questions = Questions(
            reflection.ServerReflectionRequest(list_services=""),
            reflection.ServerReflectionRequest(file_containing_symbol="viam.component.sensor.v1.SensorService"),
        )
        await handler.func(questions)
        names = [item.name for item in questions.answers[0].list_services_response.service]
        files = questions.answers[1].file_descriptor_response.file_descriptor_proto
        assert names == ["viam.component.sensor.v1.SensorService", "viam.module.v1.ModuleService"]
        assert b"SensorService" in files[0]


async def test_apis_that_it_has_no_driver_for_are_not_served(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        with pytest.raises(MachineError) as caught:
            await ApiClient(MemoryChannel(running.module.router)).call(MOTOR, "left", "stop")
        assert caught.value.kind is ErrorKind.UNSUPPORTED
