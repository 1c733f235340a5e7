from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from engine.calls.dispatch import REQUESTS_LIMIT
from engine.calls.places import SHARE, Places
from rpc.limits import Limits


def filled(limit: int, *clients: str) -> Places:
    """Let each client in turn take places until no client gets another."""
    places = Places(limit)
    while sum(places.take(client) for client in clients):
        pass
    return places


def test_the_shares_of_a_hundred_places() -> None:
    assert filled(100, "a").taken == 75
    two = filled(100, "a", "b")
    assert {holder.taken for holder in two.holders.values()} == {43}
    assert two.take("newcomer")
    assert filled(1, "a").taken == 1


def test_three_clients_that_use_all_their_streams_fit() -> None:
    streams = Limits().max_streams
    places = Places(REQUESTS_LIMIT)
    for client, handlers in (("resets", 2 * streams), ("b", streams)):
        assert all(places.take(client) for _ in range(handlers))
    places = Places(REQUESTS_LIMIT)
    assert all(places.take(client) for client in "abc" for _ in range(streams))
    while places.take("d"):
        pass
    assert places.taken < REQUESTS_LIMIT
    assert places.take("newcomer")


@given(st.integers(2, 12), st.integers(40, 200))
def test_the_next_call_gets_a_slot(hogs: int, limit: int) -> None:
    places = filled(limit, *(f"hog {number}" for number in range(hogs)))
    assert places.take("newcomer")


@given(st.integers(1, 20), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=200))
def test_taken_slots_are_the_held_ones(limit: int, steps: list[tuple[str, bool]]) -> None:
    places, held = Places(limit), Counter[str]()
    for client, takes in steps:
        free = limit - places.taken
        if takes:
            allowed = free > 0 and (not held[client] or held[client] < SHARE * free)
            assert places.take(client) is allowed
            held[client] += allowed
        elif held[client]:
            places.give_back(client)
            held[client] -= 1
        assert places.taken == held.total() <= limit
        assert {name: holder.taken for name, holder in places.holders.items()} == dict(+held)


def test_a_refusal_names_the_holders_of_the_slots() -> None:
    places = Places(4)
    namespace = SimpleNamespace(addr=lambda: ("10.0.0.7", 5000))
    key = SimpleNamespace(entity="operator")
    for _ in range(3):
        assert places.take("a", key, namespace)
    assert not places.take("a", key, namespace)
    share = places.refusal("a")
    assert share.startswith("3 of 4 calls in flight, held by operator at 10.0.0.7:5000 3; ")
    assert share.endswith("this client holds its share, and the rest is reserved for other clients")
    assert places.take("b", None, SimpleNamespace(addr=lambda: ""))
    assert places.refusal("c") == ("4 of 4 calls in flight, held by operator at 10.0.0.7:5000 3, a local socket 1")
