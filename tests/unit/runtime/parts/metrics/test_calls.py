"""How calls are counted, and their spans, on a machine in memory."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from engine.calls.counts import UNKNOWN, Counts
from engine.metrics.sample import CUMULATIVE
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import MachineError
from telemetry.metrics.spans import Span

MOTOR = "rdk:component:motor"
LEFT = f"{MOTOR}/left"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def document(*names: str) -> dict[str, object]:
    return {"components": [{"name": name, "api": MOTOR, "model": "fake"} for name in names]}


def counts(memory: MemoryMachine, owner: str, method: str) -> Counts:
    return memory.machine.traffic.calls.by_method[owner, method]


async def test_calls_are_counted_by_resource_and_method(autojump_clock: MockClock) -> None:
    async with open_machine(document("left")) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        for _ in range(3):
            await client.call(MOTOR, "left", "set_power", power_pct=0.5)
        with pytest.raises(MachineError):
            await client.call(MOTOR, "left", "go_for", rpm=0.0, revolutions=1.0)
        power = counts(memory, LEFT, "set_power")
        assert (power.calls, power.errors, power.active) == (3, 0, 0)
        assert power.received > 0
        assert power.seconds > 0
        refused = counts(memory, LEFT, "go_for")
        assert (refused.calls, refused.errors) == (1, 1)
        moving = await client.call(MOTOR, "left", "is_moving")
        assert counts(memory, LEFT, "is_moving").sent == 2 * bool(moving)


async def test_a_call_cancelled_by_its_caller_is_an_error_and_no_longer_in_flight(autojump_clock: MockClock) -> None:
    async with open_machine(document("left")) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        with trio.move_on_after(1):
            await client.call(MOTOR, "left", "go_for", rpm=1.0, revolutions=1000.0)
        result = counts(memory, LEFT, "go_for")
        assert (result.calls, result.errors, result.active) == (1, 1, 0)


async def test_names_that_callers_invent_are_counted_together(autojump_clock: MockClock) -> None:
    async with open_machine(document("left")) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        for number in range(50):
            with pytest.raises(MachineError):
                await client.call(MOTOR, f"invented-{number}", "is_moving")
        assert counts(memory, UNKNOWN, "is_moving").errors == 50
        assert len(memory.machine.traffic.calls.by_method) == 1
        assert len(memory.machine.traffic.calls._by_call) == 0


async def test_counts_of_a_resource_go_with_it(autojump_clock: MockClock) -> None:
    async with open_machine(document("left", "right")) as memory:
        await memory.machine.lifecycle.running.wait()
        client, sample = memory.client(), memory.machine.sample
        for name in ("left", "right"):
            await client.call(MOTOR, name, "is_moving")
        assert f"rpc.{LEFT}.is_moving.Calls" in sample()
        memory.write(document("right"))
        while LEFT in memory.graph.snapshot().nodes or LEFT in memory.machine.roster.planned:
            await memory.graph.settled()
            await trio.sleep(0.1)
        sample()
        values = sample()
        assert not [name for name in values if "left" in name]
        assert values[f"rpc.{MOTOR}/right.is_moving.Calls"] == 1


async def test_the_machines_own_services_have_a_name(autojump_clock: MockClock) -> None:
    async with open_machine(document()) as memory:
        await memory.machine.lifecycle.running.wait()
        await memory.client().call("viam.robot.v1.RobotService", "", "resource_names")
        assert counts(memory, "RobotService", "resource_names").calls == 1


async def test_a_sample_has_states_and_every_rate_is_known(autojump_clock: MockClock) -> None:
    broken = {"name": "broken", "api": MOTOR, "model": "no-such-model"}
    async with open_machine({"components": [*document("left")["components"], broken]}) as memory:  # type: ignore[misc]
        await memory.machine.lifecycle.running.wait()
        await memory.client().call(MOTOR, "left", "is_moving")
        values = memory.machine.sample()
        assert values[f"{LEFT}.State"] == 0
        assert values[f"{MOTOR}/broken.State"] == 3
        assert values[f"{LEFT}.InFlight"] == 0
        assert values["machine.Sessions"] == 0
        assert values["proc.machine-server.RssMB"] > 1
        assert values["net.lo.RxBytes"] >= 0
        assert {"UserCPUSecs", "RxBytes", "Calls"} <= {name.rpartition(".")[2] for name in values} & CUMULATIVE.keys()
        assert all(isinstance(value, (int, float)) for value in values.values())


async def test_no_span_is_created_without_a_collector(autojump_clock: MockClock) -> None:
    async with open_machine(document("left")) as memory:
        await memory.machine.lifecycle.running.wait()
        client, spans = memory.client(), list[Span]()
        await client.call(MOTOR, "left", "is_moving")
        memory.machine.traffic.calls.tracer.start(spans.append)
        await client.call(MOTOR, "left", "is_moving")
        memory.machine.traffic.calls.tracer.stop()
        await client.call(MOTOR, "left", "is_moving")
        assert [span.name for span in spans] == [f"{LEFT}.is_moving"]


async def test_a_span_belongs_to_its_callers_trace(autojump_clock: MockClock) -> None:
    async with open_machine(document("left")) as memory:
        await memory.machine.lifecycle.running.wait()
        spans = list[Span]()
        memory.machine.traffic.calls.tracer.start(spans.append)
        await memory.client({"traceparent": f"00-{TRACE}-{PARENT}-01"}).call(MOTOR, "left", "is_moving")
        await memory.client({"traceparent": "nonsense"}).call(MOTOR, "left", "is_moving")
        with pytest.raises(MachineError):
            await memory.client().call(MOTOR, "left", "go_for", rpm=0.0, revolutions=1.0)
        ours, foreign, failed = spans
        assert (ours.trace, ours.parent, ours.server, ours.error) == (TRACE, PARENT, True, "")
        assert ours.end >= ours.start
        assert foreign.trace != TRACE
        assert foreign.parent == ""
        assert failed.error
        assert len({span.id for span in spans}) == 3


async def test_starting_and_stopping_are_spans(autojump_clock: MockClock) -> None:
    async with open_machine(document("left")) as memory:
        await memory.machine.lifecycle.running.wait()
        spans = list[Span]()
        memory.machine.traffic.calls.tracer.start(spans.append, memory.graph.snapshot())
        memory.graph.subscribe(memory.machine.traffic.calls.tracer.note_transition)
        memory.graph.restart(LEFT, "for the test")
        await memory.graph.settled()
        assert [span.name for span in spans] == [f"stop {LEFT}", f"start {LEFT}"]
        assert all(span.error == "" and not span.server for span in spans)


async def test_a_start_that_fails_is_a_failed_span(autojump_clock: MockClock) -> None:
    async with open_machine(document()) as memory:
        await memory.machine.lifecycle.running.wait()
        spans = list[Span]()
        memory.machine.traffic.calls.tracer.start(spans.append, memory.graph.snapshot())
        memory.graph.subscribe(memory.machine.traffic.calls.tracer.note_transition)
        memory.write({"components": [{"name": "broken", "api": MOTOR, "model": "no-such-model"}]})
        with trio.fail_after(60):
            while not spans:  # noqa: ASYNC110 - on the virtual clock
                await trio.sleep(0.1)
        assert spans[0].name == f"start {MOTOR}/broken"
        assert "no-such-model" in spans[0].error
