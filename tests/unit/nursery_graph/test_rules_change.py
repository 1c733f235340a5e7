"""The rules about failures and changes, each as a property of random graphs under a random schedule."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from nursery_graph import Graph, Node, NodeStatus, Restart, Snapshot, State, Transition
from nursery_graph.testing import Script, Witness, run_seeded
from tests.unit.nursery_graph.scenario import CALM, PROPERTY, SEEDS, SHORT, WILD, Chart, charts

# 4. Not ready in time: cancelled, reason kept, retried with jittered back-off; newer configuration ends the wait.


@PROPERTY
@given(SEEDS, SHORT, st.floats(0, 0.999), st.integers(1, 6), st.sampled_from(("wait", "apply", "retry")))
def test_rule_4_start_timeout_back_off_and_preemption(
    seed: int, cleanup: float, jitter: float, attempt: int, how: str
) -> None:
    witness = Witness(lambda name: Script(start=math.inf, cleanup=cleanup))
    restart = Restart(first_delay=2, max_delay=16)
    begun: list[float] = []

    async def main() -> None:
        graph = Graph(jitter=lambda: jitter)
        graph.subscribe(lambda event: event.after is State.CONFIGURING and begun.append(event.time))
        graph.apply([witness.node("a", start_timeout=3, stop_timeout=9, restart=restart, revision="1")])
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            async for _ in graph.changes():
                if len(begun) == attempt:
                    break
            await trio.sleep_until(begun[-1] + 3 + cleanup + 0.5)
            status = graph.snapshot()["a"]
            assert status.state is State.UNHEALTHY
            assert "not ready within 3 s" in status.reason
            assert "_follow" in status.reason  # the place where it hangs
            delay = min(2.0**attempt, 16) * (1 + jitter) / 2
            assert status.retry_at == pytest.approx(begun[-1] + 3 + cleanup + delay)
            now = trio.current_time()
            if how == "apply":
                graph.apply([witness.node("a", start_timeout=3, stop_timeout=9, restart=restart, revision="2")])
            elif how == "retry":
                graph.retry("a")
            else:
                await trio.sleep_until(status.retry_at)
                await trio.testing.wait_all_tasks_blocked()
            assert begun[-1] == pytest.approx(now if how != "wait" else status.retry_at)
            nursery.cancel_scope.cancel()

    run_seeded(seed, main)
    witness.check()


# 7. A crash takes down the dependents first, in order; then the policy restarts it, and they return.


@PROPERTY
@given(charts(CALM), SEEDS, st.data())
def test_rule_7_a_crash_takes_dependents_down_and_all_come_back(chart: Chart, seed: int, data: st.DataObject) -> None:
    crashing = data.draw(st.sampled_from(sorted(chart.requires)))
    first = True

    def script(name: str) -> Script:
        nonlocal first
        if name == crashing and first:
            first = False
            return Script(life=100)
        return chart.scripts[name][0]

    witness = Witness(script)
    order: list[str] = []

    async def main() -> None:
        graph = Graph()
        graph.apply(chart.nodes(witness))
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()
            before = dict(witness.live)
            graph.subscribe(lambda event: order.append(f"{event.name} {event.after and event.after.value}"))
            await trio.sleep(99.9)
            await trio.sleep(30)
            snapshot = await graph.settled()
            assert all(status.state is State.READY for status in snapshot.nodes.values())
            restarted = {name for name, record in witness.live.items() if before[name] is not record}
            assert restarted == chart.above(crashing)
            # It is down before its dependents are, and returns after the last of them has ended.
            back = order.index(f"{crashing} configuring")
            assert all(order.index(f"{name} unconfigured") < back for name in restarted - {crashing})
            nursery.cancel_scope.cancel()

    run_seeded(seed, main)
    witness.check()


@PROPERTY
@given(SEEDS, st.sampled_from(("permanent", "transient", "temporary")), st.booleans(), st.integers(0, 4))
def test_rule_7_policy_and_intensity(seed: int, kind: str, fails: bool, intensity: int) -> None:
    witness = Witness(lambda name: Script(life=1, fails=fails))
    restart = Restart(kind, intensity=intensity, period=1000, first_delay=0.1, max_delay=0.1)  # type: ignore[arg-type]

    async def main() -> None:
        graph = Graph()
        graph.apply([witness.node("a", restart=restart)])
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await trio.sleep(100)
            status = graph.snapshot()["a"]
            if kind == "permanent" or (kind == "transient" and fails):
                assert status.runs == intensity + 1
                assert status.state is State.UNHEALTHY
                assert f"gave up: crashed {intensity + 1} times within 1000 s" in status.reason
            else:
                assert status.runs == 1
                assert status.state is (State.UNHEALTHY if fails else State.UNCONFIGURED)
                assert ("temporary" in status.reason) if fails else (status.reason == "finished")
            assert status.retry_at is None
            graph.retry("a")
            await trio.sleep(0.5)
            assert graph.snapshot()["a"].state is State.READY
            nursery.cancel_scope.cancel()

    run_seeded(seed, main)
    witness.check()


# 8. apply changes only what differs and its dependents; the last call wins.


@settings(PROPERTY, max_examples=150)
@given(charts(WILD, runs=2), SEEDS, st.data())
def test_rule_8_the_last_apply_counts_and_the_rest_is_not_disturbed(
    chart: Chart, seed: int, data: st.DataObject
) -> None:
    # At first every node misbehaves, until `tame`.
    tame = False
    wild = chart.witness()
    witness = Witness(lambda name: Script(start=0.1, cleanup=0.1) if tame else wild.script(name))
    names = sorted(chart.requires)
    plans = data.draw(
        st.lists(
            st.tuples(st.dictionaries(st.sampled_from(names), st.integers(0, 2)), st.integers(0, 9)),
            min_size=1,
            max_size=6,
        )
    )

    def nodes(expected: dict[str, int]) -> list[Node]:
        created = chart.nodes(witness)
        return [
            Node(n.name, n.run, n.requires, n.uses, expected[n.name], str(expected[n.name]), 5, 4, n.restart)
            for n in created
            if n.name in expected
        ]

    async def main() -> None:
        nonlocal tame
        graph = Graph(shutdown_timeout=1000)
        graph.subscribe(witness.on_transition)
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            for required, wait in plans:
                graph.apply(nodes(required))
                await trio.sleep(wait)
            tame = True
            last = plans[-1][0]
            await trio.sleep(1000)  # all misbehaving runs end
            for name in last:
                graph.restart(name, "end of the wild days")
            await trio.sleep(100)  # settled() does not wait for nodes that end too late; this does
            snapshot = await graph.settled()
            complete: set[str] = set()
            for name in chart.requires:
                if name in last and chart.requires[name] <= complete:
                    complete.add(name)
            assert snapshot.nodes.keys() == last.keys()
            assert {name for name, s in snapshot.nodes.items() if s.state is State.READY} == complete
            assert witness.live.keys() == complete
            assert all(snapshot[name].revision == str(last[name]) for name in last)

            # Another change, of a single node: only its dependents may notice.
            if complete:
                changed = data.draw(st.sampled_from(sorted(complete)))
                kind = data.draw(st.sampled_from(("version", "remove", "revision", "nothing")))
                before = dict(witness.live)
                new = dict(last)
                if kind == "version":
                    new[changed] = 7
                elif kind == "remove":
                    del new[changed]
                again = nodes(new)
                if kind == "revision":
                    again = [Node(n.name, n.run, n.requires, n.uses, n.version, "x") for n in again]
                graph.apply(again)
                snapshot = await graph.settled()
                gone = {name for name in before if witness.live.get(name) is not before[name]}
                touched = _reached(chart, changed, set(before)) if kind in ("version", "remove") else set()
                assert gone == touched
            nursery.cancel_scope.cancel()

    run_seeded(seed, main)
    witness.check()


def _reached(chart: Chart, name: str, running: set[str]) -> set[str]:
    results = {name}
    for other in chart.requires:
        if other in running and (chart.requires[other] | chart.uses[other]) & results:
            results.add(other)
    return results


# 9. An exception in one node never cancels a sibling or the graph.


@PROPERTY
@given(charts(CALM, optional=False), SEEDS, st.data())
def test_rule_9_exceptions_reach_no_other_node(chart: Chart, seed: int, data: st.DataObject) -> None:
    bad = data.draw(st.sampled_from(sorted(chart.requires)))
    error: Callable[[], BaseException] = data.draw(
        st.sampled_from(
            (ValueError, SystemExit, GeneratorExit, lambda: BaseExceptionGroup("two", [ValueError(), SystemExit()]))
        )
    )
    when = data.draw(SHORT)
    witness = chart.witness()

    def spoilt(node: Node) -> Callable[..., Awaitable[None]]:
        async def run(deps: object, *, task_status: trio.TaskStatus[object]) -> None:
            await trio.sleep(when)
            raise error()

        return run if node.name == bad else node.run

    async def main() -> None:
        graph = Graph()
        graph.apply([Node(n.name, spoilt(n), n.requires) for n in chart.nodes(witness)])  # type: ignore[arg-type]
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await trio.sleep(200)
            assert witness.cancelled == []
            assert witness.live.keys() == chart.requires.keys() - chart.above(bad)
            assert graph.snapshot()[bad].state is not State.READY
            nursery.cancel_scope.cancel()

    run_seeded(seed, main)
    witness.check()


# 10. A snapshot is immutable; changes() may skip but never loses the last state; every transition is reported.


@PROPERTY
@given(charts(WILD, runs=3), SEEDS, st.integers(1, 30))
def test_rule_10_observers_are_never_left_behind(chart: Chart, seed: int, pause: int) -> None:
    witness = chart.witness()
    replayed: dict[str, State] = {}
    last: list[Snapshot] = []

    def replay(event: Transition) -> None:
        assert replayed.get(event.name) is event.before, "a transition was lost"
        if event.after is None:
            del replayed[event.name]
        else:
            replayed[event.name] = event.after

    async def main() -> None:
        graph = Graph(shutdown_timeout=1000)
        failed = []

        def checked(event: Transition) -> None:
            try:
                replay(event)
            except AssertionError as exc:
                failed.append(exc)

        graph.subscribe(checked)
        graph.apply(chart.nodes(witness))

        async def slow_reader() -> None:
            async for snapshot in graph.changes():
                assert not last or snapshot.sequence > last[-1].sequence
                last.append(snapshot)
                await trio.sleep(pause)

        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            nursery.start_soon(slow_reader)
            for step in range(30):
                await trio.sleep(2)
                now = graph.snapshot()
                assert {name: status.state for name, status in now.nodes.items()} == replayed
                if step == 15:
                    graph.apply(chart.nodes(witness)[1:])
            graph.stop()
        assert not failed
        final = {name: status.state for name, status in last[-1].nodes.items()}
        assert final == replayed == {name: s.state for name, s in graph.snapshot().nodes.items()}
        assert set(final.values()) <= {State.UNCONFIGURED, State.UNHEALTHY}

    run_seeded(seed, main)
    witness.check()
    some: NodeStatus = next(iter(last[0].nodes.values()))
    with pytest.raises(AttributeError):
        some.reason = "changed"  # type: ignore[misc]
    with pytest.raises(TypeError):
        last[0].nodes["n0"] = some  # type: ignore[index]


# Optional dependencies: restarts when they appear, change or disappear, and no others.


@PROPERTY
@given(st.lists(st.tuples(SHORT, st.booleans()), min_size=1, max_size=5), SEEDS, st.data())
def test_optional_dependencies_cause_no_restart_storm(
    used: list[tuple[float, bool]], seed: int, data: st.DataObject
) -> None:
    works = {f"u{number}": ok for number, (_, ok) in enumerate(used)}
    witness = Witness(
        lambda name: Script() if name == "user" else Script(start=used[int(name[1:])][0], start_fails=not works[name])
    )
    deps: list[set[str]] = []

    async def user(value: dict[str, object], *, task_status: trio.TaskStatus[None]) -> None:
        deps.append(set(value))
        task_status.started()
        await trio.sleep_forever()

    def nodes(names: set[str], version: str = "") -> list[Node]:
        # A pause longer than the test: failed nodes are not retried.
        patient = Restart(first_delay=10_000, max_delay=10_000)
        created = [witness.node(name, restart=patient, version=version) for name in sorted(names)]
        return [Node("user", user, uses=frozenset(works)), *created]  # type: ignore[arg-type]

    async def main() -> None:
        graph = Graph()
        graph.apply(nodes(set(works)))
        async with trio.open_nursery() as nursery:
            await nursery.start(graph.run)
            await graph.settled()
            good = {name for name, ok in works.items() if ok}
            assert deps == [good]  # started once, with all working dependencies
            lost = data.draw(st.sampled_from(sorted(works)))
            graph.apply(nodes(set(works) - {lost}))
            await graph.settled()
            if lost in good:
                assert deps.pop() == good - {lost}
            assert deps == [good]
            works[lost] = True
            graph.apply(nodes(set(works)))
            await graph.settled()
            assert deps.pop() == good | {lost}
            graph.apply(nodes(set(works), version="2"))  # all change at once: one restart
            await graph.settled()
            assert deps.pop() == good | {lost}
            assert len(deps) <= 1 + (lost not in good)
            nursery.cancel_scope.cancel()

    run_seeded(seed, main)
    witness.check()
