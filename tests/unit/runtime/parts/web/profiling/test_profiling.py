"""Profiles, tasks, memory and drawings of the resource graph."""

from __future__ import annotations

import marshal
import signal
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from nursery_graph import Graph, Node
from runtime.parts.web.profiling import cpu, graph
from runtime.parts.web.profiling.memory import allocations
from runtime.parts.web.profiling.tasks import task_stacks
from schema.errors import ErrorKind, MachineError


def spin(times: int) -> int:
    """Use the processor, under a name that appears in a profile."""
    return sum(number * number for number in range(times))


def test_only_calls_within_the_context_are_counted() -> None:
    spin(10)
    with cpu.counting() as profile:
        spin(1000)
    spin(10)
    statistics: Any = marshal.loads(cpu.pstats_file(profile))
    (item,) = [entry for (_, _, name), entry in statistics.items() if name == "spin"]
    assert item[0] == 1
    assert "spin" in cpu.table(profile)
    assert sys.getprofile() is None


def test_one_profile_at_a_time() -> None:
    with cpu.counting(), pytest.raises(MachineError, match="another profile is running") as caught, cpu.counting():
        pass
    assert caught.value.kind is ErrorKind.PRECONDITION
    with cpu.counting():
        pass


def test_stacks_name_what_used_the_processor_from_outside_in() -> None:
    with cpu.sampling(0.001) as stacks:
        while stacks.total() < 5:
            spin(20_000)
    assert signal.getsignal(signal.SIGPROF) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    text = cpu.collapsed(stacks)
    frames = next(line for line in text.splitlines() if ":spin" in line).rpartition(" ")[0].split(";")
    assert frames[0] == "event loop"
    assert any(frame.endswith("test_stacks_name_what_used_the_processor_from_outside_in") for frame in frames)
    assert sum(int(line.rpartition(" ")[2]) for line in text.splitlines()) == stacks.total()


def test_only_one_sampling_at_a_time_and_the_timer_is_off_after_a_failure() -> None:
    with cpu.sampling(), pytest.raises(MachineError, match="already"), cpu.sampling():
        pass
    with pytest.raises(ZeroDivisionError), cpu.sampling():
        raise ZeroDivisionError
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_frames_cannot_break_a_line_of_stacks() -> None:
    text = cpu.collapsed(cpu.Counter({("task; with semicolon", "b"): 2, ("a",): 3}))
    assert text == "a 3\ntask, with semicolon;b 2\n"


async def test_every_task_is_listed_with_its_wait() -> None:
    event = trio.Event()

    async def waits_for_ever() -> None:
        await event.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits_for_ever, name="waiting task")
        await wait_all_tasks_blocked()
        text = task_stacks()
        event.set()
    lines = text.splitlines()
    index_of_task = next(index for index, line in enumerate(lines) if line.strip() == "waiting task")
    assert "waits_for_ever" in lines[index_of_task + 1]
    assert "Event.wait" in lines[index_of_task + 2]
    assert lines[0] == "<init>"


async def test_kept_memory_is_attributed_to_its_source(autojump_clock: MockClock) -> None:
    kept: list[bytes] = []

    async def wait() -> None:
        kept.append(bytes(1_000_000))

    text = await allocations(wait)
    assert float(text.partition(": ")[2].partition(" KiB")[0]) > 900
    assert "test_profiling.py" in text
    assert "builtins." in text.partition("objects: ")[2]


async def test_only_one_memory_comparison_at_a_time() -> None:
    async def wait() -> None:
        with pytest.raises(MachineError, match="already"):
            await allocations(wait)

    await allocations(wait)


@contextmanager
def nodes() -> Iterator[list[Node]]:
    async def fine(deps: Any, /, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()

    async def broken(deps: Any, /, *, task_status: trio.TaskStatus[None]) -> None:
        raise MachineError('a "quoted" <reason>')

    yield [
        Node("internal/bus", fine),
        Node("rdk:component:sensor/a", fine, requires={"internal/bus"}),
        Node("rdk:component:sensor/b", broken, uses={"internal/bus"}),
        Node("rdk:component:sensor/c", fine, requires={"rdk:component:sensor/gone"}),
    ]


async def test_the_graph_as_text_dot_and_svg(autojump_clock: MockClock) -> None:
    machine = Graph()
    with nodes() as expected:
        async with trio.open_nursery() as nursery:
            machine.apply(expected)
            await nursery.start(machine.run)
            await machine.settled()
            snapshot = machine.snapshot()
            machine.stop()
    text = graph.as_text(snapshot)
    assert "internal/bus: ready, started 1 times" in text
    assert "rdk:component:sensor/a: ready, started 1 times\n  requires internal/bus" in text
    assert "waits for rdk:component:sensor/gone" in text
    dot = graph.as_dot(snapshot)
    assert '"rdk:component:sensor/a" -> "internal/bus";' in dot
    assert '"rdk:component:sensor/b" -> "internal/bus" [style=dashed];' in dot
    assert '\\"quoted\\"' in dot
    assert dot.count("{") == dot.count("}") == 1
    picture = ElementTree.fromstring(graph.as_svg(snapshot))
    titles = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(snapshot.nodes)
    assert any("<reason>" in (title or "") for title in titles)
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == 2
