from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest
import structlog
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.host import CALLS_LIMIT, FAILING_LIMIT, REST_LIMIT, ResourceHost
from engine.planning.reconfigure import PlannedResource
from engine.resource import Actuator, Component, Context, Extra, Started
from hal.sim import World
from hal.sim.hardware import SimHardware
from schema.errors import ErrorKind, MachineError
from schema.names import API, ResourceName

EVENTS: list[str] = []


class Probe(Actuator, Component):
    """Record the events of a resource's life; each test chooses how it misbehaves."""

    API: ClassVar[API] = API("rdk", "component", "motor")
    misbehave: ClassVar[str] = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        if self.misbehave == "constructor":
            raise MachineError("no such pin")
        EVENTS.append("constructed")
        self.crash = trio.Event()

    async def run(self, *, task_status: Started) -> None:
        if self.misbehave == "early":
            return
        if self.misbehave == "start":
            raise OSError("no bus")
        if self.misbehave == "slow":
            await trio.sleep_forever()
        task_status.started()
        EVENTS.append("ready")
        try:
            await self.crash.wait()
            if self.misbehave.startswith("crash"):
                raise OSError("unplugged")
        finally:
            EVENTS.append("cleanup")
            if self.misbehave == "crash slowly":
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.5)

    async def stop(self, *, extra: Extra = None) -> None:
        EVENTS.append("stop")
        if self.misbehave == "stop fails":
            raise OSError("stuck")
        if self.misbehave == "stop hangs":
            await trio.sleep_forever()
        await trio.sleep(0.1)
        EVENTS.append("at rest")

    async def is_moving(self) -> bool:
        return False

    async def work(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            EVENTS.append("call left")


@pytest.fixture(autouse=True)
def behaved() -> Iterator[None]:
    EVENTS.clear()
    Probe.misbehave = ""
    yield
    Probe.misbehave = ""


def host_of() -> ResourceHost:
    planned = PlannedResource(ResourceName.parse("rdk:component:motor/m"), "components.0", "a:b:c", 0, cls=Probe)
    return ResourceHost(
        planned,
        world=World(),
        hardware=SimHardware(World()),
        log=structlog.get_logger("test"),
        changed=lambda host, is_open: EVENTS.append("open" if is_open else "closed"),
    )


async def life(host: ResourceHost, deps: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
    await host.run(deps or {}, **{"task_status": trio.TASK_STATUS_IGNORED, **kwargs})


async def call(host: ResourceHost, outcomes: list[object]) -> None:
    try:
        async with host.use() as driver:
            await driver.work()  # type: ignore[attr-defined]
    except MachineError as error:
        outcomes.append(error.kind)


async def test_the_order_of_a_life_and_the_error_of_a_call_during_it(autojump_clock: MockClock) -> None:
    host = host_of()
    outcomes: list[object] = []
    async with trio.open_nursery() as callers:
        async with trio.open_nursery() as nursery:
            assert await nursery.start(life, host) is host
            assert host.is_open
            callers.start_soon(call, host, outcomes)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert EVENTS == ["constructed", "ready", "open", "closed", "call left", "stop", "at rest", "cleanup"]
    assert outcomes == [ErrorKind.UNAVAILABLE]
    assert host.calls == set()


async def test_no_call_enters_before_ready_or_after_stop() -> None:
    host = host_of()
    with pytest.raises(MachineError) as caught:
        await host.use().__aenter__()
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    async with trio.open_nursery() as nursery:
        await nursery.start(life, host)
        async with host.use() as driver:
            assert driver.name == host.name
        nursery.cancel_scope.cancel()
    with pytest.raises(MachineError):
        await host.use().__aenter__()


@pytest.mark.parametrize(
    ("misbehave", "kind", "words"),
    [
        ("constructor", MachineError, "no such pin"),
        ("start", OSError, "no bus"),
        ("early", MachineError, "before it was ready"),
    ],
)
async def test_an_error_during_the_start_is_raised_unchanged(misbehave: str, kind: type[Exception], words: str) -> None:
    Probe.misbehave = misbehave
    with pytest.raises(kind, match=words):
        await life(host_of())
    assert "open" not in EVENTS


async def test_a_start_that_hangs_can_be_cancelled(autojump_clock: MockClock) -> None:
    Probe.misbehave = "slow"
    with trio.move_on_after(1) as scope:
        await life(host_of())
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(1)


@pytest.mark.parametrize(("misbehave", "kind"), [("crash", OSError), ("", MachineError)])
async def test_a_crash_ends_calls_and_is_raised_bare(misbehave: str, kind: type[Exception]) -> None:
    Probe.misbehave = misbehave
    host = host_of()
    outcomes: list[object] = []
    errors: list[Exception] = []

    async def recorded(*, task_status: trio.TaskStatus[ResourceHost]) -> None:
        try:
            await life(host, task_status=task_status)
        except Exception as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        await nursery.start(recorded)
        nursery.start_soon(call, host, outcomes)
        await wait_all_tasks_blocked()
        host.resource.crash.set()  # type: ignore[attr-defined]
    assert [type(error) for error in errors] == [kind]
    assert outcomes == [ErrorKind.UNAVAILABLE]
    assert "stop" not in EVENTS  # its run has ended: there is no driver left to command
    assert EVENTS[-1] == "call left"


@pytest.mark.parametrize(("misbehave", "seconds"), [("stop fails", 0.0), ("stop hangs", REST_LIMIT)])
async def test_a_bad_stop_does_not_keep_it_alive(misbehave: str, seconds: float, autojump_clock: MockClock) -> None:
    Probe.misbehave = misbehave
    async with trio.open_nursery() as nursery:
        await nursery.start(life, host_of())
        nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(seconds)
    assert EVENTS[-2:] == ["stop", "cleanup"]


async def test_a_call_that_does_not_leave_delays_the_stop_by_a_limit(autojump_clock: MockClock) -> None:
    host = host_of()

    async def work() -> None:
        async with host.use():
            with trio.CancelScope(shield=True):
                await trio.sleep(1000)
            await trio.sleep_forever()

    async def stubborn() -> None:
        with pytest.raises(MachineError):
            await work()

    async with trio.open_nursery() as callers:
        async with trio.open_nursery() as nursery:
            await nursery.start(life, host)
            callers.start_soon(stubborn)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert trio.current_time() == pytest.approx(CALLS_LIMIT + 0.1)
        assert EVENTS[-3:] == ["stop", "at rest", "cleanup"]


async def test_cancelled_between_started_and_open_does_not_hang(autojump_clock: MockClock) -> None:
    """The host ends wherever the cancellation comes: each step of the start is tried."""
    for steps in range(12):
        EVENTS.clear()
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(life, host_of())
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        assert EVENTS.count("ready") == EVENTS.count("cleanup"), steps
        assert EVENTS.count("open") == EVENTS.count("closed"), steps


async def test_dependencies_are_handed_over_as_drivers() -> None:
    first, second = host_of(), host_of()
    async with trio.open_nursery() as nursery:
        await nursery.start(life, first)
        await nursery.start(life, second, {"rdk:component:motor/m": first, "internal/x": object()})
        assert second.resource.dependencies == {first.name: first.resource}
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("when", ["while it cleans up", "just before"])
async def test_a_call_into_a_failed_driver_gets_a_readable_error(when: str, autojump_clock: MockClock) -> None:
    """A failing driver closes its handles before its end is visible; the caller gets no AttributeError from that."""
    Probe.misbehave = "crash slowly"
    host = host_of()
    errors: list[MachineError] = []

    async def ignored(*, task_status: trio.TaskStatus[ResourceHost]) -> None:
        with pytest.raises(OSError, match="unplugged"):
            await life(host, task_status=task_status)

    async def surprised() -> None:
        with pytest.raises(MachineError) as caught:
            async with host.use():
                raise AttributeError("no bus")
        errors.append(caught.value)

    async with trio.open_nursery() as nursery:
        await nursery.start(ignored)
        if when == "just before":
            nursery.start_soon(surprised)
            await wait_all_tasks_blocked()
        host.resource.crash.set()  # type: ignore[attr-defined]
        if when == "while it cleans up":
            await trio.sleep(0.1)
            assert host.is_open
            nursery.start_soon(surprised)
    assert [error.kind for error in errors] == [ErrorKind.UNAVAILABLE]
    assert "has failed: unplugged" in str(errors[0])
    assert isinstance(errors[0].__cause__, AttributeError)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(AttributeError("a bug"), FAILING_LIMIT), (MachineError("on purpose"), 0.0), (NotImplementedError(), 0.0)],
)
async def test_errors_of_a_healthy_driver_stay_what_they_are(
    error: Exception, seconds: float, autojump_clock: MockClock
) -> None:
    host = host_of()
    async with trio.open_nursery() as nursery:
        await nursery.start(life, host)
        with pytest.raises(type(error)) as caught:
            async with host.use():
                raise error
        assert caught.value is error
        assert trio.current_time() == pytest.approx(seconds)
        nursery.cancel_scope.cancel()
