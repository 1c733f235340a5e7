"""Who receives an event, and that other listeners are not asked."""

from __future__ import annotations

import pytest

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


def test_a_function_is_called_for_each_event_of_its_subject() -> None:
    events, called, every = Events(), list[str](), list[str]()
    with events.calling(called.append, "part", "a"), events.calling(every.append, "part"):
        for subject in ("a", "b", "a"):
            events.notify("part", subject)
        events.notify("other", "a")
        events.notify_all()
    events.notify("part", "a")
    assert (called, every) == (["a", "a", EVERY], ["a", "b", "a", EVERY])
