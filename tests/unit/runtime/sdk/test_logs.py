"""The transfer of a module's log to the machine."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from nursery_graph import State, Transition
from runtime.sdk.logs import BATCH, PAUSE, QUEUE, MachineSink, to_wire
from runtime.sdk.program import levels
from runtime.server.robot.messages import LogEntry
from schema.document.log import LogConfiguration, parse_level
from schema.document.resources import ResourceEntry
from schema.errors import ErrorKind, MachineError
from schema.names import Model, ResourceName
from telemetry.logs.entry import Entry
from telemetry.logs.rules import rules_of_document
from tests.unit.runtime.sdk.drivers import Thermometer
from tests.unit.runtime.sdk.harness import SENSOR, KeptSink, open_module


def entry(seq: int, message: str = "said", **fields: Any) -> Entry:
    return Entry(seq, 1_700_000_000.25, 30, "rdk.resource_manager.x", "a/b.py:12", message, fields)


class Machine:
    """Accept log entries, refuse them, or hang."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.refuses = 0
        self.hangs = False

    async def call(self, api: str, name: str, method: str, **arguments: Any) -> None:
        assert (api, name, method) == ("viam.robot.v1.RobotService", "", "log")
        await trio.lowlevel.checkpoint()
        if self.hangs:
            await trio.sleep_forever()
        if self.refuses:
            self.refuses -= 1
            raise MachineError("not now", kind=ErrorKind.UNAVAILABLE)
        self.batches.append(arguments["logs"])

    def client(self) -> Any:
        return self


def messages(machine: Machine) -> list[str]:
    return [item["message"] for batch in machine.batches for item in batch]


async def test_entries_go_in_batches_and_in_order(autojump_clock: MockClock) -> None:
    machine, sink = Machine(), MachineSink("here", KeptSink())
    for number in range(1, 251):
        sink.write(entry(number, str(number)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sink.send, machine.client)
        await wait_all_tasks_blocked()
        assert [len(batch) for batch in machine.batches] == [BATCH, BATCH, 50]
        sink.write(entry(251, "251"))
        await wait_all_tasks_blocked()
        assert messages(machine) == [str(number) for number in range(1, 252)]
        nursery.cancel_scope.cancel()


async def test_refused_messages_are_sent_again(autojump_clock: MockClock) -> None:
    machine, sink = Machine(), MachineSink("here", KeptSink())
    machine.refuses = 3
    sink.write(entry(1, "one"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sink.send, machine.client)
        begin = trio.current_time()
        await trio.sleep(3.5 * PAUSE)
        assert messages(machine) == ["one"]
        assert trio.current_time() - begin == 3.5 * PAUSE
        nursery.cancel_scope.cancel()


async def test_dropped_messages_are_counted_and_reported(autojump_clock: MockClock) -> None:
    machine, fallback = Machine(), KeptSink()
    sink = MachineSink("here", fallback)
    for number in range(1, QUEUE + 4):
        sink.write(entry(number, str(number)))
    assert sink.dropped == 3
    await sink.flush(machine.client())
    assert messages(machine)[:2] == ["3 messages before this one were lost", "4"]
    assert messages(machine)[-1] == str(QUEUE + 3)
    assert sink.dropped == 0
    assert not fallback.entries


async def test_a_call_that_is_cancelled_loses_nothing(autojump_clock: MockClock) -> None:
    machine, fallback = Machine(), KeptSink()
    sink = MachineSink("here", fallback)
    machine.hangs = True
    sink.write(entry(1, "one"))
    sink.dropped = 2
    with trio.move_on_after(1):
        await sink.flush(machine.client())
    assert sink.dropped == 2
    sink.close()
    assert [item.message for item in fallback.entries] == ["one"]
    assert fallback.closed


def test_an_entry_on_the_wire_is_what_machines_read() -> None:
    wire = to_wire(entry(1, "said", count=0, names=["a"]), "here")
    assert (wire["level"], wire["logger_name"], wire["host"]) == ("warn", "rdk.resource_manager.x", "here")
    assert wire["time"].timestamp() == 1_700_000_000.25
    assert wire["caller"] == {"Defined": True, "File": "a/b.py", "Line": 12}
    assert wire["fields"] == [
        {"Key": "count", "Type": 21, "Interface": 0},
        {"Key": "names", "Type": 21, "Interface": ["a"]},
    ]
    assert set(wire) <= set(LogEntry.__dataclass_fields__)
    json.dumps({**wire, "time": ""})


async def test_the_last_entries_are_sent_before_the_module_ends(autojump_clock: MockClock) -> None:
    async with open_module(Thermometer) as running:
        await running.add(SENSOR, "air", "acme:demo:thermometer")

        def last_word(transition: Transition) -> None:
            if transition.name.endswith("/air") and transition.after is State.UNCONFIGURED:
                running.sink.write(entry(1, "the last word"))

        running.module.graph.subscribe(last_word)
        running.module.stop("SIGTERM")
        await running.stopped.wait()
        fallback = KeptSink()
        running.sink._fallback = fallback
        running.sink.close()
        assert not fallback.entries


@pytest.mark.parametrize(
    ("level", "own", "expected"),
    [("info", "debug", 10), ("warn", "", 30), ("info", "error", 40), ("error", "info", 20)],
)
def test_the_level_of_an_entry_beats_that_of_the_module(level: str, own: str, expected: int) -> None:
    name = ResourceName.parse("rdk:component:sensor/air")
    configuration = LogConfiguration(level=own) if own else None
    first = ResourceEntry(name, Model("acme", "demo", "x"), log_configuration=configuration)
    rules, warnings = rules_of_document(levels(level, [first]))
    assert not warnings
    assert rules.level("rdk.resource_manager.rdk:component:sensor/air") == expected
    assert rules.level("rdk.resource_manager.rdk:component:sensor/other") == parse_level(level)
