"""Who receives an event, and that other listeners are not asked."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from cloud.store.events import EVERY, Events, Listener


def unread(listener: Listener) -> list[str]:
    subjects, listener._unread = list(listener._unread), {}
    return subjects


def test_events_reach_the_listeners_of_their_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    events, asked = Events(), list[Listener]()
    notify = Listener.notify

    def counted(listener: Listener, subject: str) -> None:
        asked.append(listener)
        notify(listener, subject)

    monkeypatch.setattr(Listener, "notify", counted)
    with (
        events.listening("offer", "a") as own,
        events.listening("offer", "b", also=["secret"]) as other,
        events.listening("offer") as every,
    ):
        events.notify("offer", "a")
        assert (unread(own), unread(other), unread(every)) == (["a"], [], ["a"])
        assert set(asked) == {own, every}
        events.notify("offer", EVERY)
        assert (unread(own), unread(other), unread(every)) == ([EVERY], [EVERY], [EVERY])
        events.notify("secret", "a")
        events.notify("secret", "b")
        assert (unread(own), unread(other), unread(every)) == ([], ["b"], [])
        with events.listening("offer", "a") as second:
            events.notify("offer", "a")
            assert (unread(own), unread(second)) == (["a"], ["a"])
        events.notify_all()
        assert (unread(own), unread(other), unread(second)) == ([EVERY], [EVERY], [])
    assert not any(events._listeners.values())


def test_a_function_is_called_for_each_event_of_its_pairs() -> None:
    events, heard = Events(), list[str]()
    with events.calling(heard.append, ("offer", "a"), ("secret", EVERY)):
        for topic, subject in (("offer", "a"), ("offer", "b"), ("secret", "c"), ("offer", EVERY)):
            events.notify(topic, subject)
    events.notify("offer", "a")
    assert heard == ["a", "c", EVERY]


async def test_a_task_waits_for_events(autojump_clock: trio.testing.MockClock) -> None:
    events = Events()
    with events.listening("offer") as news:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_later, events)
            assert await news.all() == ["a", "b"]
        events.notify("offer", "c")
        assert await news.next() == "c"
        with trio.move_on_after(1.0) as scope:
            await news.all()
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(news.next)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trio.BusyResourceError):
                await news.next()
            events.notify("offer", "d")


async def _later(events: Events) -> None:
    await trio.testing.wait_all_tasks_blocked()
    events.notify("offer", "a")
    events.notify("offer", "b")
