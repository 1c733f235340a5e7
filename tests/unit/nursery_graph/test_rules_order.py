"""The rules about starting and stopping, each as a property of random graphs under a random schedule."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from nursery_graph import Graph, Node, Overdue, State, Transition
from nursery_graph.testing import Script, Witness, run_seeded
from tests.unit.nursery_graph.scenario import CALM, PROPERTY, SEEDS, SHORT, WILD, Chart, charts


@pytest.fixture(autouse=True, scope="module")
def interrupts() -> Iterator[None]:
    """Enable Ctrl-C as in a terminal, also in a background job, which is started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


async def ended_by(cause: str, graph: Graph, after: float) -> None:
    """Run the graph until `cause` ends it at the time `after`; suppress the cause."""

    async def fail() -> None:
        await trio.sleep(after)
        raise ZeroDivisionError

    async def interrupt() -> None:
        await trio.sleep(after)
        signal.raise_signal(signal.SIGINT)

    async def stop() -> None:
        await trio.sleep(after)
        graph.stop()

    with trio.CancelScope() as scope:
        if cause == "deadline":
            scope.deadline = trio.current_time() + after
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(graph.run)
                if cause == "cancel":
                    await trio.sleep(after)
                    nursery.cancel_scope.cancel()
                elif cause != "deadline":
                    nursery.start_soon({"stop": stop, "neighbour": fail, "interrupt": interrupt}[cause])
        except* (ZeroDivisionError, KeyboardInterrupt):
            pass


CAUSES = st.sampled_from(("stop", "cancel", "deadline", "neighbour", "interrupt"))


# 1. When a node has stopped, no task of it remains.


@PROPERTY
@given(charts(WILD, runs=3), SEEDS, CAUSES, st.integers(0, 60))
def test_rule_1_nothing_remains_of_a_node_that_has_stopped(chart: Chart, seed: int, cause: str, after: int) -> None:
    witness = chart.witness()
    children: dict[str, int] = {}
    results: list[str] = []

    def with_child(node: Node) -> Node:
        async def child() -> None:
            children[node.name] = children.get(node.name, 0) + 1
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(1)
                children[node.name] -= 1

        async def run(deps: object, *, task_status: trio.TaskStatus[object]) -> None:
            if children.get(node.name):
                results.append(f"{node.name} begins while a child of its previous run remains")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)
                await node.run(deps, task_status=task_status)  # type: ignore[arg-type]
                nursery.cancel_scope.cancel()

        return Node(node.name, run, node.requires, node.uses, stop_timeout=4, start_timeout=5, restart=node.restart)

    async def main() -> None:
        graph = Graph(shutdown_timeout=1000)
        graph.subscribe(witness.on_transition)

        def gone(event: Transition) -> None:
            if event.after in (None, State.UNCONFIGURED) and children.get(event.name):
                results.append(f"{event.name} is said to have stopped while a child remains")

        graph.subscribe(gone)
        graph.apply([with_child(node) for node in chart.nodes(witness)])
        await ended_by(cause, graph, after)
        assert not witness.live
        assert not any(children.values())

    run_seeded(seed, main)
    assert not results


# 2. `run` begins only when every required dependency is ready.


@PROPERTY
@given(charts(WILD, runs=3), SEEDS)
def test_rule_2_a_run_begins_when_all_it_requires_is_ready(chart: Chart, seed: int) -> None:
    witness = chart.witness()

    async def main() -> None:
        graph = Graph()
        graph.apply(chart.nodes(witness))
        await ended_by("cancel", graph, 60)

    run_seeded(seed, main)
    witness.check()


# 3. A slow or hung node delays only its dependents.


@PROPERTY
@given(charts(CALM, optional=False), SEEDS, st.data())
def test_rule_3_every_node_is_ready_as_soon_as_its_dependencies_allow(
    chart: Chart, seed: int, data: st.DataObject
) -> None:
    hung = data.draw(st.sampled_from(sorted(chart.requires)))
    witness = Witness(lambda name: Script(start=math.inf) if name == hung else chart.scripts[name][0])
    ready_at: dict[str, float] = {}

    async def main() -> None:
        graph = Graph()
        graph.subscribe(lambda event: event.after is State.READY and ready_at.setdefault(event.name, event.time))
        graph.apply(chart.nodes(witness, start_timeout=math.inf))
        begin = trio.current_time()
        await ended_by("cancel", graph, 100)
        expected = {}
        for name in chart.requires:
            if name not in chart.above(hung):
                earliest = max((expected[other] for other in chart.requires[name]), default=begin)
                expected[name] = earliest + chart.scripts[name][0].start
        assert ready_at == pytest.approx(expected)

    run_seeded(seed, main)
    witness.check()


# 5. A node's scope is cancelled only after all its dependents have finished, whatever the cause.


@PROPERTY
@given(charts(WILD, runs=3), SEEDS, CAUSES, st.integers(0, 60))
def test_rule_5_dependents_end_first_whatever_the_cause(chart: Chart, seed: int, cause: str, after: int) -> None:
    witness = chart.witness()

    async def main() -> None:
        graph = Graph(shutdown_timeout=1000)
        graph.apply(chart.nodes(witness))
        await ended_by(cause, graph, after)
        assert not witness.live

    run_seeded(seed, main)
    witness.check()


@PROPERTY
@given(charts(CALM), SEEDS, st.data())
def test_rule_5_an_interrupt_inside_a_node_stops_all_in_order_and_goes_on(
    chart: Chart, seed: int, data: st.DataObject
) -> None:
    hit = data.draw(st.sampled_from(sorted(chart.requires)))
    interrupted = Script(life=3, error=KeyboardInterrupt)
    witness = Witness(lambda name: interrupted if name == hit else chart.scripts[name][0])

    async def main() -> None:
        graph = Graph(shutdown_timeout=1000)
        graph.apply(chart.nodes(witness))
        with pytest.raises(KeyboardInterrupt):
            await graph.run()
        assert not witness.live

    run_seeded(seed, main)
    witness.check()


# 6. Stopping is bounded; nodes that still run are named; the whole shutdown has a deadline.


@PROPERTY
@given(charts(st.builds(Script, cleanup=SHORT, deaf=st.sampled_from((0.0, 0.0, 50.0, 500.0)))), SEEDS)
def test_rule_6_a_node_that_does_not_stop_is_named_and_not_waited_for(chart: Chart, seed: int) -> None:
    witness = chart.witness()
    overdue: dict[str, str] = {}
    cancelled: dict[str, float] = {}

    def note(event: Transition) -> None:
        if event.before is State.REMOVING is event.after:
            overdue[event.name] = event.reason

    async def main() -> None:
        graph = Graph(shutdown_timeout=10_000)
        graph.subscribe(note)
        graph.apply(chart.nodes(witness))
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()
            begin = trio.current_time()
            graph.stop()
            expected_end: dict[str, float] = {}
            for name in reversed(chart.requires):
                users = [o for o in chart.requires if name in chart.requires[o] | chart.uses[o]]
                script = chart.scripts[name][0]
                cancelled[name] = max((expected_end[o] for o in users), default=begin)
                expected_end[name] = cancelled[name] + min(script.deaf + script.cleanup, 4)
            await trio.sleep_until(max(expected_end.values()) + 0.001)
            slow = {name for name, scripts in chart.scripts.items() if scripts[0].deaf}
            assert overdue.keys() == slow
            assert all("still running 4 s after it was cancelled" in reason for reason in overdue.values())
            assert all(f"node {name} at _live" in reason for name, reason in overdue.items())
            assert witness.live.keys() == slow
            assert graph.snapshot()[min(slow)].tasks if slow else True

    run_seeded(seed, main)
    witness.check()


@PROPERTY
@given(charts(st.builds(Script, cleanup=SHORT, deaf=st.sampled_from((0.0, 3.0, 50.0)))), SEEDS, SHORT)
def test_rule_6_at_the_deadline_the_rest_is_cancelled_and_reported(chart: Chart, seed: int, limit: float) -> None:
    witness = chart.witness()
    reports: list[tuple[float, Overdue]] = []
    limit += 0.05

    def on_overdue(report: Overdue) -> None:
        witness.order_given_up = True
        reports.append((trio.current_time(), report))
        assert report.tasks.keys() == witness.live.keys()
        assert all(name in str(report) for name in witness.live)
        raise RuntimeError("a bad hook must not harm")

    async def main() -> None:
        graph = Graph(shutdown_timeout=limit, on_overdue=on_overdue)
        graph.apply(chart.nodes(witness))
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()
            begin = trio.current_time()
            graph.stop()
            await trio.sleep(limit + 0.001)
            if witness.live:
                assert [when for when, _ in reports] == pytest.approx([begin + limit])
                assert all(record.cancelled_at <= begin + limit + 0.001 for record in witness.live.values())
            else:
                assert reports == []

    run_seeded(seed, main)
    witness.check()
