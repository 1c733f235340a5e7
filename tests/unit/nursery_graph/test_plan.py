"""Resolution of a desired set, and differences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nursery_graph import Node
from nursery_graph.plan import cyclic_groups, difference, resolve

NAMES = [f"n{number}" for number in range(6)]
EDGES = st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES), max_size=3))


async def run(deps: object, *, task_status: object) -> None:
    raise AssertionError("plans run nothing")


def node(name: str, requires: str = "", uses: str = "", **options: object) -> Node:
    return Node(name, run, set(requires.split()), set(uses.split()), **options)  # type: ignore[arg-type]


def reach(edges: dict[str, frozenset[str]], start: str) -> set[str]:
    results: set[str] = set()
    todo = [start]
    while todo:
        for target in edges.get(todo.pop(), frozenset()):
            if target in edges and target not in results:
                results.add(target)
                todo.append(target)
    return results


@given(EDGES)
def test_cyclic_groups_are_the_groups_that_reach_each_other(edges: dict[str, frozenset[str]]) -> None:
    expected = {
        frozenset({name} | {other for other in reach(edges, name) if name in reach(edges, other)})
        for name in edges
        if name in reach(edges, name)
    }
    result = cyclic_groups(edges)
    assert set(result) == expected
    assert len(result) == len(expected)


def test_cyclic_groups_of_a_long_chain_need_no_recursion() -> None:
    edges = {str(number): {str(number + 1)} for number in range(50_000)}
    assert cyclic_groups(edges) == []
    edges["49999"] = {"0"}
    assert cyclic_groups(edges) == [frozenset(edges)]


@given(EDGES, EDGES)
def test_remaining_waits_have_no_cycle(requires: dict[str, frozenset[str]], uses: dict[str, frozenset[str]]) -> None:
    desired = resolve([Node(name, run, requires[name], uses.get(name, frozenset())) for name in requires])
    for name, expected in desired.items():
        in_cycle = name in reach(requires, name)
        missing = requires[name] - requires.keys()
        assert bool(expected.problem) == (in_cycle or bool(missing))
        assert ("cycle" in expected.problem) == in_cycle
        assert expected.requires == tuple(sorted(requires[name]))
    sound = {
        name: frozenset((*required.requires, *required.uses))
        for name, required in desired.items()
        if not required.problem
    }
    assert cyclic_groups(sound) == []


def test_reasons_name_what_is_wrong() -> None:
    triangle = [node("a", "b"), node("b", "c"), node("c", "a")]
    desired = resolve([*triangle, node("d", "x y"), node("e"), node("e"), node("s", "s")])
    assert desired["a"].problem == "dependency cycle: a -> b -> c -> a"
    assert desired["d"].problem == "requires 'x', 'y', which are not configured"
    assert desired["e"].problem == "2 nodes are called 'e': names must be unique"
    assert desired["s"].problem == "dependency cycle: s -> s"


def test_an_optional_dependency_on_a_cycle_is_left_out_with_a_note() -> None:
    desired = resolve([node("a", uses="b c"), node("b", "a"), node("c")])
    assert desired["a"].uses == ("c",)
    assert "'b'" in desired["a"].note
    assert not desired["a"].problem
    assert not desired["b"].problem
    assert not desired["b"].note


def test_a_name_both_required_and_used_is_required() -> None:
    expected = resolve([node("a"), node("b", "a", "a")])["b"]
    assert (expected.requires, expected.uses) == (("a",), ())


def test_difference_sorts_every_name_into_one_heap() -> None:
    old = [node("gone"), node("same"), node("newer", revision="1"), node("other", version=1), node("edge")]
    new = [node("same"), node("newer", revision="2"), node("other", version=2), node("edge", uses="q"), node("new")]
    plan = difference(resolve(old), resolve(new))
    assert plan.removed == ("gone",)
    assert plan.kept == ("same",)
    assert plan.revised == ("newer",)
    assert plan.replaced == ("other", "edge")
    assert plan.added == ("new",)
