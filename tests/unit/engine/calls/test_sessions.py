from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.calls.sessions import EXPIRED, MAX_SESSIONS, MIN_WINDOW, Session, Sessions, window_of
from rpc.carrier import Farewell
from schema.errors import ErrorKind, MachineError

MOTOR = "rdk:component:motor/m"
ARM = "rdk:component:arm/a"


class Stops:
    """Record which resources were stopped, by which session and when."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, str, tuple[str, ...]]] = []

    async def __call__(self, session: Session, resources: tuple[str, ...]) -> None:
        self.seen.append((trio.current_time(), session.id, resources))


@pytest.fixture
def stops() -> Stops:
    return Stops()


@pytest.fixture
async def sessions(nursery: trio.Nursery, stops: Stops) -> AsyncIterator[Sessions]:
    served = Sessions(stops, window=2.0)
    await nursery.start(served.run)
    yield served
    nursery.cancel_scope.cancel()


async def test_a_silent_client_loses_control_after_exactly_one_window(
    autojump_clock: MockClock, sessions: Sessions, stops: Stops
) -> None:
    session = sessions.start()
    sessions.command(MOTOR, session)
    sessions.command(ARM, session)
    await trio.sleep(1.999)
    assert stops.seen == []
    await trio.sleep(1)
    assert stops.seen == [(2.0, session.id, (ARM, MOTOR))]
    assert len(sessions) == 0
    assert sessions.holder(MOTOR) is None


async def test_heartbeats_keep_it_alive_for_ever(autojump_clock: MockClock, sessions: Sessions, stops: Stops) -> None:
    session = sessions.start()
    sessions.command(MOTOR, session)
    for _ in range(1000):
        await trio.sleep(1.9)
        sessions.find(session.id).touch()
    assert stops.seen == []


async def test_a_monitored_call_is_a_sign_of_life(autojump_clock: MockClock, sessions: Sessions, stops: Stops) -> None:
    session = sessions.start()
    await trio.sleep(1.5)
    sessions.command(MOTOR, session)
    await trio.sleep(1.5)
    assert session.alive
    await trio.sleep(1)
    assert [when for when, _, _ in stops.seen] == [3.5]


async def test_a_client_that_has_closed_its_connection_is_known(
    autojump_clock: MockClock, sessions: Sessions, stops: Stops
) -> None:
    first, second = Farewell(), Farewell()
    session = sessions.start()
    sessions.command(MOTOR, session)
    assert not session.closed
    session.touch(first)
    session.touch(second)
    first.said = True
    assert not session.closed, "it was heard on another connection since"
    second.said = True
    assert session.closed
    await trio.sleep(1.9)
    assert stops.seen == [], "a client that comes back in time goes on"
    await trio.sleep(1)
    assert stops.seen == [(2.0, session.id, (MOTOR,))]


async def test_the_last_commander_holds_a_resource(autojump_clock: MockClock, sessions: Sessions, stops: Stops) -> None:
    first, second = sessions.start(), sessions.start()
    sessions.command(MOTOR, first)
    sessions.command(ARM, first)
    sessions.command(MOTOR, second)
    sessions.command(ARM, None)  # a client without a session
    assert sessions.holder(MOTOR) is second
    assert sessions.holder(ARM) is None
    await trio.sleep(3)
    assert [resources for _, _, resources in stops.seen] == [(MOTOR,)]


async def test_a_forgotten_resource_is_not_stopped(autojump_clock: MockClock, sessions: Sessions, stops: Stops) -> None:
    session = sessions.start()
    sessions.command(MOTOR, session)
    sessions.forget([MOTOR])
    await trio.sleep(3)
    assert stops.seen == []


@pytest.mark.parametrize("case", ["unknown", "expired", "owner"])
async def test_calls_without_a_live_session_are_refused(
    autojump_clock: MockClock, sessions: Sessions, case: str
) -> None:
    session = sessions.start(owner="a")
    if case == "expired":
        await trio.sleep(5)
    with pytest.raises(MachineError) as caught:
        sessions.find("x" if case == "unknown" else session.id, "b" if case == "owner" else "a")
    assert str(caught.value) == EXPIRED == "SESSION_EXPIRED"
    assert caught.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize("late", [2.0, 2.2, 50.0])
async def test_a_heartbeat_that_is_read_late_keeps_it_alive(
    nursery: trio.Nursery, mock_clock: MockClock, late: float
) -> None:
    """The heartbeat arrived in time, but this process was busy or suspended and read it after the deadline."""
    sessions = Sessions(stops := Stops(), window=2.0)
    await nursery.start(sessions.run)
    session = sessions.start()
    sessions.command("m", session)
    await wait_all_tasks_blocked()
    mock_clock.jump(late)  # the watching task has not run yet
    sessions.find(session.id).touch()
    await wait_all_tasks_blocked()
    assert (session.alive, stops.seen) == (True, [])
    mock_clock.jump(2.0)
    await wait_all_tasks_blocked()
    with pytest.raises(MachineError, match=EXPIRED):
        sessions.find(session.id)
    assert [resources for _, _, resources in stops.seen] == [("m",)]
    nursery.cancel_scope.cancel()


async def test_resume_goes_on_with_a_living_session_of_the_same_owner(
    autojump_clock: MockClock, sessions: Sessions
) -> None:
    session = sessions.start(owner="a")
    await trio.sleep(1.5)
    assert sessions.start(resume=session.id, owner="a") is session
    await trio.sleep(1.5)
    assert session.alive
    other = sessions.start(resume=session.id, owner="b")
    assert other is not session
    await trio.sleep(5)
    assert sessions.start(resume=session.id, owner="a").id != session.id


async def test_a_new_window_counts_for_sessions_started_or_resumed_later(
    autojump_clock: MockClock, sessions: Sessions
) -> None:
    old = sessions.start()
    sessions.window = 0.5
    new = sessions.start()
    await trio.sleep(1)
    assert old.alive
    assert not new.alive


async def test_the_number_of_sessions_is_bounded(autojump_clock: MockClock, sessions: Sessions) -> None:
    for _ in range(MAX_SESSIONS):
        sessions.start()
    with pytest.raises(MachineError) as caught:
        sessions.start()
    assert caught.value.kind is ErrorKind.EXHAUSTED
    await trio.sleep(3)
    sessions.start()


async def test_not_served_means_unavailable(stops: Stops) -> None:
    with pytest.raises(MachineError) as caught:
        Sessions(stops).start()
    assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_stopping_the_server_expires_nothing(
    nursery: trio.Nursery, stops: Stops, autojump_clock: MockClock
) -> None:
    sessions = Sessions(stops)
    async with trio.open_nursery() as inner:
        await inner.start(sessions.run)
        sessions.command(MOTOR, sessions.start())
        inner.cancel_scope.cancel()
    await trio.sleep(10)
    assert stops.seen == []
    assert len(sessions) == 0


async def test_status_says_what_is_held_and_for_how_long(autojump_clock: MockClock, sessions: Sessions) -> None:
    session = sessions.start(owner="key", peer="127.0.0.1:5")
    sessions.command(MOTOR, session)
    await trio.sleep(0.5)
    (status,) = sessions.status()
    assert (status.id, status.owner, status.peer, status.resources) == (session.id, "key", "127.0.0.1:5", (MOTOR,))
    assert status.expires_in == pytest.approx(1.5)


async def test_a_client_may_ask_for_a_shorter_window_but_not_a_longer_one(
    autojump_clock: MockClock, sessions: Sessions, stops: Stops
) -> None:
    short, tiny, long = (sessions.start(window=window) for window in (0.5, 0.0001, 60.0))
    assert (short.window, tiny.window, long.window) == (0.5, MIN_WINDOW, 2.0)
    sessions.command(MOTOR, short)
    await trio.sleep(0.499)
    assert stops.seen == []
    await trio.sleep(0.1)
    assert stops.seen == [(0.5, short.id, (MOTOR,))]


async def test_an_interruption_ends_sessions_of_people_and_no_others(
    autojump_clock: MockClock, sessions: Sessions, stops: Stops
) -> None:
    person, program = sessions.start(window=1.0), sessions.start()
    sessions.command(MOTOR, person)
    sessions.command(ARM, program)
    sessions.interrupt()
    with pytest.raises(MachineError, match=EXPIRED):
        sessions.find(person.id)
    assert sessions.find(program.id) is program
    assert sessions.start(resume=person.id, window=1.0) is not person
    await wait_all_tasks_blocked()
    assert sessions.holder(MOTOR) is None
    assert sessions.holder(ARM) is program
    assert stops.seen == []  # stop_all does that


@pytest.mark.parametrize(("text", "window"), [(None, math.inf), ("1.5", 1.5), (b"2", 2.0), ("inf", math.inf)])
def test_the_window_in_the_metadata(text: str | bytes | None, window: float) -> None:
    assert window_of(text) == window


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan"])
def test_an_invalid_window_is_refused(text: str) -> None:
    with pytest.raises(MachineError, match="write seconds"):
        window_of(text)


async def test_a_session_resumed_with_a_window_is_interrupted_too(
    autojump_clock: MockClock, sessions: Sessions
) -> None:
    session = sessions.start()
    assert sessions.start(resume=session.id, window=1.0) is session
    sessions.interrupt()
    with pytest.raises(MachineError, match=EXPIRED):
        sessions.find(session.id)


async def test_the_connection_of_a_client_without_a_session_ends_what_it_commanded(
    autojump_clock: MockClock, sessions: Sessions, stops: Stops
) -> None:
    first, second = Farewell(), Farewell()
    for _ in range(3):
        sessions.follow(MOTOR, first)
        sessions.follow(MOTOR, second)
    assert [len(farewell.on_said) for farewell in (first, second)] == [1, 1]
    first.said = True
    await trio.sleep(1)
    assert stops.seen == [], "the other client has commanded it since"
    second.said = True
    await trio.sleep(1)
    assert [resources for _, _, resources in stops.seen] == [(MOTOR,)]


async def test_a_session_takes_over_from_a_client_without(
    autojump_clock: MockClock, sessions: Sessions, stops: Stops
) -> None:
    farewell = Farewell()
    sessions.follow(MOTOR, farewell)
    sessions.command(MOTOR, sessions.start())
    farewell.said = True
    await trio.sleep(1)
    assert stops.seen == []
    sessions.follow(ARM, other := Farewell())
    sessions.forget([ARM])
    other.said = True
    await trio.sleep(0.5)
    assert stops.seen == []
