"""The interface of Graph, as far as the rules do not cover it."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from nursery_graph import Graph, Node, Restart, Snapshot, State, current_node
from nursery_graph.testing import Script, Witness


async def stay(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[object]) -> None:
    task_status.started("value")
    await trio.sleep_forever()


async def test_values_and_unknown_names(nursery: trio.Nursery) -> None:
    graph = Graph()
    graph.apply([Node("a", stay), Node("b", stay, {"nowhere"})])
    await nursery.start(graph.run)
    await graph.settled()
    assert graph.value("a") == "value"
    for name in ("b", "c"):
        with pytest.raises(KeyError, match=name):
            graph.value(name)
    with pytest.raises(KeyError, match="no node is called 'c'"):
        graph.retry("c")
    with pytest.raises(KeyError, match="no node is called 'c'"):
        graph.restart("c", "why not")
    graph.stop()


async def test_run_once_and_stop_before_run() -> None:
    graph = Graph()
    graph.apply([Node("a", stay)])
    graph.stop()
    await graph.run()
    assert (await graph.settled()).nodes == {}
    with pytest.raises(RuntimeError, match="runs only once"):
        await graph.run()


async def test_apply_is_ignored_once_stopped(nursery: trio.Nursery) -> None:
    graph = Graph()
    await nursery.start(graph.run)
    graph.stop()
    graph.apply([Node("a", stay)])
    assert (await graph.settled()).nodes == {}


async def test_a_broken_iterable_changes_nothing(nursery: trio.Nursery) -> None:
    def broken() -> Any:
        yield Node("b", stay)
        raise ZeroDivisionError

    graph = Graph()
    graph.apply([Node("a", stay)])
    await nursery.start(graph.run)
    with pytest.raises(ZeroDivisionError):
        graph.apply(broken())
    assert set((await graph.settled()).nodes) == {"a"}
    graph.stop()


async def test_the_last_failure_is_kept_until_the_next_run_is_ready_or_is_another(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    async def tried(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[object]) -> None:
        if graph.snapshot()["a"].runs % 2:
            raise OSError("unplugged")
        await trio.sleep(10)
        task_status.started("value")
        await trio.sleep_forever()

    def status() -> tuple[State, str, str]:
        ca = graph.snapshot()["a"]
        return ca.state, ca.reason, ca.failure

    graph = Graph()
    graph.apply([Node("a", tried, revision="1")])
    await nursery.start(graph.run)
    await trio.sleep(2)
    assert status() == (State.CONFIGURING, "", "OSError: unplugged")
    await trio.sleep(10)
    assert status() == (State.READY, "", "")
    graph.restart("a", "again")
    await trio.sleep(0.1)
    assert status() == (State.UNHEALTHY, "OSError: unplugged", "OSError: unplugged")
    graph.apply([Node("a", tried, revision="2")])
    await trio.sleep(0.1)
    assert status() == (State.CONFIGURING, "", "")
    graph.stop()


async def test_sick_and_well_again_leaves_dependents_alone(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    witness = Witness(lambda name: Script(unhealthy_after=5) if name == "a" else Script())
    graph = Graph()
    graph.apply([witness.node("a"), witness.node("b", requires={"a"})])
    await nursery.start(graph.run)
    await graph.settled()
    before = dict(witness.live)
    await trio.sleep(6)
    status = graph.snapshot()["a"]
    assert (status.state, status.reason) == (State.UNHEALTHY, "unplugged")
    assert graph.value("a") is before["a"]
    graph.apply([witness.node("a"), witness.node("b", requires={"a"}), witness.node("c", requires={"a"})])
    assert (await graph.settled())["c"].state is State.READY
    await trio.sleep(6)
    assert graph.snapshot()["a"].state is State.READY
    assert graph.snapshot()["a"].reason == ""
    assert {name: witness.live[name] for name in before} == before
    graph.stop()
    await graph.settled()
    witness.check()


async def test_sick_before_ready_counts_from_then_on(nursery: trio.Nursery) -> None:
    async def run(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        assert current_node().name == "a"
        with pytest.raises(ValueError, match="reason"):
            current_node().unhealthy("")
        current_node().unhealthy("no probe")
        task_status.started()
        await trio.sleep_forever()

    graph = Graph()
    graph.apply([Node("a", run)])
    await nursery.start(graph.run)
    status = (await graph.settled())["a"]
    assert (status.state, status.reason) == (State.UNHEALTHY, "no probe")
    graph.stop()


def test_current_node_elsewhere_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="outside the run of a node"):
        current_node()


async def test_started_twice_is_the_fault_of_the_node(nursery: trio.Nursery) -> None:
    async def run(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        task_status.started()

    graph = Graph()
    graph.apply([Node("a", run)])
    await nursery.start(graph.run)
    status = (await graph.settled())["a"]
    assert "`started` was called twice" in status.reason
    graph.stop()


async def test_returning_before_ready_is_a_failure_with_a_reason(nursery: trio.Nursery) -> None:
    async def run(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        await trio.lowlevel.checkpoint()

    graph = Graph()
    graph.apply([Node("a", run)])
    await nursery.start(graph.run)
    status = (await graph.settled())["a"]
    assert (status.state, status.reason) == (State.UNHEALTHY, "returned before it was ready")
    assert status.retry_at is not None
    graph.stop()


async def test_an_error_in_cleanup_is_reported(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    witness = Witness(lambda name: Script(cleanup_fails=True))
    reasons: list[str] = []
    graph = Graph()
    graph.subscribe(lambda event: reasons.append(event.reason))
    graph.apply([witness.node("a")])
    await nursery.start(graph.run)
    await graph.settled()
    graph.apply([])
    await graph.settled()
    assert any("its cleanup failed: Fault: cleanup of a" in reason for reason in reasons)
    assert graph.snapshot().nodes == {}
    graph.stop()


async def test_task_trees_when_asked(nursery: trio.Nursery) -> None:
    async def child() -> None:
        await trio.sleep_forever()

    async def run(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as own:
            own.start_soon(child)
            task_status.started()

    graph = Graph()
    graph.apply([Node("a", run)])
    await nursery.start(graph.run)
    await graph.settled()
    await trio.testing.wait_all_tasks_blocked()
    assert graph.snapshot()["a"].tasks == ()
    tree = graph.snapshot(tasks=True)["a"].tasks
    assert len(tree) == 2
    assert tree[0].startswith("node a at run (test_graph.py:")
    assert tree[1].startswith("  ")
    assert "child (test_graph.py:" in tree[1]
    graph.stop()


async def test_nodes_inherit_the_context_of_run_not_of_the_caller_of_apply(nursery: trio.Nursery) -> None:
    colour = contextvars.ContextVar("colour", default="none")
    seen: dict[str, str] = {}

    async def first(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        colour.set("red")
        await stay({}, task_status=task_status)  # starts the second from here

    async def second(deps: object, *, task_status: trio.TaskStatus[None]) -> None:
        seen["second"] = colour.get()
        await stay({}, task_status=task_status)

    graph = Graph()
    graph.apply([Node("first", first), Node("second", second, {"first"})])
    colour.set("blue")
    await nursery.start(graph.run)
    await graph.settled()
    assert seen == {"second": "blue"}
    graph.stop()


async def test_a_failing_observer_is_logged_and_harmless(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    graph = Graph()
    messages: list[str] = []

    def bad(event: object) -> None:
        raise ZeroDivisionError

    graph.subscribe(bad)
    end = graph.subscribe(lambda event: messages.append(event.name))
    graph.apply([Node("a", stay)])
    await nursery.start(graph.run)
    assert (await graph.settled())["a"].state is State.READY
    assert "an observer failed" in caplog.text
    count = len(messages)
    assert count
    end()
    end()
    graph.stop()
    await graph.settled()
    assert len(messages) == count


async def test_an_observer_may_change_the_graph(nursery: trio.Nursery) -> None:
    graph = Graph()
    graph.subscribe(
        lambda event: graph.apply([Node("a", stay), Node("b", stay)]) if event.after is State.READY else None
    )
    graph.apply([Node("a", stay)])
    await nursery.start(graph.run)
    snapshot = await graph.settled()
    assert {name: status.state for name, status in snapshot.nodes.items()} == {"a": State.READY, "b": State.READY}
    graph.stop()


async def test_a_change_while_the_reader_was_away_is_not_lost(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    graph = Graph()
    await nursery.start(graph.run)
    changes = graph.changes()
    assert (await anext(changes)).nodes == {}
    graph.apply([Node("a", stay)])
    await graph.settled()
    with trio.fail_after(1):
        assert await anext(changes) is graph.snapshot()
    with trio.move_on_after(1) as nothing_new:
        await anext(changes)
    assert nothing_new.cancelled_caught
    graph.stop()


async def test_changes_end_with_the_graph(nursery: trio.Nursery) -> None:
    graph = Graph()
    graph.apply([Node("a", stay)])
    seen: list[Snapshot] = []
    async with trio.open_nursery() as readers:

        async def read() -> None:
            seen.extend([snapshot async for snapshot in graph.changes()])

        await nursery.start(graph.run)
        readers.start_soon(read)
        await graph.settled()
        graph.stop()
    assert seen[-1]["a"].state is State.UNCONFIGURED
    assert seen[-1] is graph.snapshot()


async def test_a_fresh_dependency_is_a_fresh_chance(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    works = False
    witness = Witness(lambda name: Script(start_fails=name == "b" and not works))
    graph = Graph()
    graph.apply([witness.node("a"), witness.node("b", requires={"a"})])
    await nursery.start(graph.run)
    assert (await graph.settled())["b"].state is State.UNHEALTHY
    works = True
    now = trio.current_time()
    graph.restart("a", "plugged in elsewhere")
    assert (await graph.settled())["b"].state is State.READY
    assert trio.current_time() == now
    graph.stop()


async def test_a_removed_node_that_comes_back_while_it_ends(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    witness = Witness(lambda name: Script(cleanup=2))
    graph = Graph()
    graph.subscribe(witness.on_transition)
    graph.apply([witness.node("a")])
    await nursery.start(graph.run)
    await graph.settled()
    graph.apply([])
    assert graph.snapshot()["a"].state is State.REMOVING
    graph.apply([witness.node("a", version=2)])
    await graph.settled()
    assert witness.begun == ["a", "a"]
    assert graph.value("a") is witness.live["a"]
    graph.stop()
    await graph.settled()
    witness.check()


@pytest.mark.parametrize(
    ("values", "error", "word"),
    [
        ({"name": ""}, ValueError, "name"),
        ({"requires": "abc"}, TypeError, "pass a set"),
        ({"uses": "abc"}, TypeError, "pass a set"),
        ({"start_timeout": 0}, ValueError, "start_timeout"),
        ({"stop_timeout": math.nan}, ValueError, "stop_timeout"),
    ],
)
def test_impossible_nodes_are_refused(values: dict[str, Any], error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        Node(**{"name": "a", "run": stay, **values})


def test_an_impossible_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="shutdown_timeout"):
        Graph(shutdown_timeout=0)


async def test_a_finished_node_that_was_removed_starts_when_it_comes_back(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """Also if it returns while its dependents still end: the finished node is not the added one."""
    begun: list[str] = []

    async def job(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[None]) -> None:
        begun.append("job")
        task_status.started()
        if len(begun) > 1:
            await trio.sleep_forever()
        await trio.sleep(1)

    async def slow(deps: Mapping[str, Any], *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)

    graph = Graph()
    nodes = [Node("job", job, restart=Restart("transient")), Node("user", slow, requires={"job"})]
    graph.apply(nodes)
    await nursery.start(graph.run)
    await trio.sleep(2)  # the job has finished, its user is still ending
    graph.apply([])
    graph.apply(nodes)
    snapshot = await graph.settled()
    assert begun == ["job", "job"]
    assert {name: status.state for name, status in snapshot.nodes.items()} == {"job": State.READY, "user": State.READY}
    graph.stop()


async def test_a_start_has_its_whole_limit_though_the_process_stood_still(mock_clock: trio.testing.MockClock) -> None:
    answer = trio.Event()

    async def run(deps: object, /, *, task_status: trio.TaskStatus[None]) -> None:
        await answer.wait()
        task_status.started()
        await trio.sleep_forever()

    graph = Graph()
    graph.apply([Node("a", run, start_timeout=10)])
    async with trio.open_nursery() as nursery:
        await nursery.start(graph.run)
        await trio.testing.wait_all_tasks_blocked()
        answer.set()
        mock_clock.jump(3600)  # its answer has arrived, but was not read
        await trio.testing.wait_all_tasks_blocked()
        assert (graph.snapshot()["a"].state, graph.snapshot()["a"].runs) == (State.READY, 1)
        nursery.cancel_scope.cancel()


async def test_a_process_that_is_always_late_gives_a_start_up_at_last(mock_clock: trio.testing.MockClock) -> None:
    async def run(deps: object, /, *, task_status: trio.TaskStatus[None]) -> None:
        await trio.sleep_forever()

    graph = Graph()
    graph.apply([Node("a", run, start_timeout=10)])
    async with trio.open_nursery() as nursery:
        await nursery.start(graph.run)
        for state in (*[State.CONFIGURING] * 4, State.UNHEALTHY):
            await trio.testing.wait_all_tasks_blocked()
            assert graph.snapshot()["a"].state is state
            mock_clock.jump(50)
        nursery.cancel_scope.cancel()
