"""APIs that a module defines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import pytest
from trio.testing import MockClock

from engine.components.sensing.sensor import Sensor
from engine.resource import Service
from runtime.sdk import own_api
from runtime.sdk.api import own_bases
from schema.errors import ConfigError, ErrorKind, MachineError
from tests.helpers.summation import DESCRIPTOR, PlainSummation, Summation, Total
from tests.unit.runtime.sdk.harness import SENSOR, open_module

SUMMATION = "acme:service:summation"


async def test_it_is_served_as_published_ones_are(autojump_clock: MockClock) -> None:
    async with open_module(PlainSummation) as running:
        answer = await running.introduce()
        (handler,) = answer["handlermap"]["handlers"]
        assert handler["subtype"]["proto_service"] == "acme.service.summation.v1.SummationService"
        await running.add(SUMMATION, "adder", "acme:demo:summation")
        assert await running.calls.call(SUMMATION, "adder", "sum", numbers=[1, 2, 3.5]) == 6.5
        assert await running.calls.call(SUMMATION, "adder", "do_command", command={"a": 1}) == {"echo": {"a": 1}}
        async with aclosing(running.calls.stream(SUMMATION, "adder", "partial", numbers=[1, 2, 3])) as sums:
            assert [item async for item in sums] == [1, 3, 6]
        with pytest.raises(MachineError, match="a number is negative: use its magnitude") as caught:
            await running.calls.call(SUMMATION, "adder", "sum", numbers=[-1])
        assert caught.value.kind is ErrorKind.PRECONDITION
        with pytest.raises(MachineError) as caught:
            await running.calls.call(SUMMATION, "nowhere", "sum", numbers=[1])
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_it_is_a_dependency_of_its_type(autojump_clock: MockClock) -> None:
    async with open_module(PlainSummation, Total) as running:
        await running.add(SUMMATION, "adder", "acme:demo:summation")
        needs = [f"{SUMMATION}/adder", f"{SENSOR}/plain"]
        await running.add(SENSOR, "total", "acme:demo:total", needs, summation="adder", sensor="plain")
        assert await running.calls.call(SENSOR, "total", "get_readings") == {"total": 6, "last": 6}


async def test_of_the_machine_it_is_a_proxy_of_its_type(autojump_clock: MockClock) -> None:
    async with open_module(Total) as running:
        needs = [f"{SUMMATION}/adder", f"{SENSOR}/plain"]
        await running.add(SENSOR, "total", "acme:demo:total", needs, summation="adder", sensor="plain")
        driver = running.module.resources.find(f"{SENSOR}/total").resource
        assert isinstance(driver.dependency(Summation, "adder"), Summation)
        with pytest.raises(MachineError) as caught:  # the machine in memory has no such resource
            await running.calls.call(SENSOR, "total", "get_readings")
        assert caught.value.kind in (ErrorKind.UNSUPPORTED, ErrorKind.NOT_FOUND)


@pytest.mark.parametrize(
    ("triple", "error", "words"),
    [
        ("summation", ConfigError, "is not an API"),
        ("acme:thing:summation", MachineError, "acme:service:summation"),
        ("rdk:component:sensor", MachineError, "is a published API"),
        ("acme:service:other", MachineError, "is already registered for acme:service:summation"),
    ],
)
def test_invalid_apis(triple: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        own_api(triple, DESCRIPTOR)


def test_methods_must_fit_their_rpcs() -> None:
    class Wrong(Service):
        async def sum(self, number: str) -> float:
            return 0.0

    class Empty(Service):
        pass

    class Misspelt(Service):
        async def summ(self, numbers: Sequence[float]) -> float:
            return 0.0

    with pytest.raises(TypeError, match="has no argument numbers"):
        own_api(SUMMATION, DESCRIPTOR)(Wrong)
    for cls in (Empty, Misspelt):
        with pytest.raises(TypeError, match="has no method of"):
            own_api(SUMMATION, DESCRIPTOR)(cls)
    assert own_bases[Summation.API] is Summation
    assert issubclass(Total, Sensor)
