"""The layered layout, on arbitrary graphs that include cycles, gaps and long chains."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from rpc.pages.graph_layout import BOX_HEIGHT, BOX_WIDTH, GAP_Y, Layout, crossings, layers, layout

NAMES = [f"n{index}" for index in range(14)]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    """Draw any graph, including cycles, self-loops and edges to missing nodes."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    target = st.sampled_from([*NAMES, "nobody"])
    return {name: draw(st.lists(target, max_size=4)) for name in names}


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    names = draw(st.permutations(NAMES))
    return {
        name: draw(st.lists(st.sampled_from(names[:index]), unique=True, max_size=4)) if index else []
        for index, name in enumerate(names)
    }


def boxes_overlap(drawing: Layout) -> bool:
    return any(
        abs(a.x - b.x) < BOX_WIDTH and abs(a.y - b.y) < BOX_HEIGHT + GAP_Y - 0.2
        for a, b in combinations(drawing.boxes, 2)
    )


@given(graphs())
@settings(deadline=None)
def test_every_node_has_one_box_inside_the_drawing_and_none_overlap(graph: dict[str, list[str]]) -> None:
    drawing = layout(graph)
    assert [box.name for box in drawing.boxes] == sorted(graph)
    assert not boxes_overlap(drawing)
    for box in drawing.boxes:
        assert 0 <= box.x <= drawing.width - BOX_WIDTH
        assert 0 <= box.y <= drawing.height - BOX_HEIGHT
    for edge in drawing.edges:
        assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in edge.points)


@given(graphs())
@settings(deadline=None)
def test_every_edge_between_known_nodes_is_drawn_once(graph: dict[str, list[str]]) -> None:
    expected = {(dep, name) for name, deps in graph.items() for dep in deps if dep in graph and dep != name}
    drawn = [(edge.source, edge.target) for edge in layout(graph).edges]
    assert sorted(drawn) == sorted(expected)


@given(acyclic())
@settings(deadline=None)
def test_dependencies_stand_left_of_their_dependents(graph: dict[str, list[str]]) -> None:
    drawing = layout(graph)
    by_name = {box.name: box for box in drawing.boxes}
    for name, deps in graph.items():
        for dep in deps:
            assert by_name[dep].layer < by_name[name].layer
            assert by_name[dep].x + BOX_WIDTH < by_name[name].x


@given(acyclic())
@settings(deadline=None)
def test_edges_start_and_end_at_their_boxes_and_cross_no_box(graph: dict[str, list[str]]) -> None:
    drawing = layout(graph)
    by_name = {box.name: box for box in drawing.boxes}
    for edge in drawing.edges:
        source, target = by_name[edge.source], by_name[edge.target]
        assert edge.points[0] == (source.x + BOX_WIDTH, source.y + BOX_HEIGHT / 2)
        assert edge.points[-1] == (target.x, target.y + BOX_HEIGHT / 2)
        for box in drawing.boxes:
            lanes = [y for x, y in edge.points[1:-1] if x in (box.x, box.x + BOX_WIDTH)]
            assert not any(box.y < y < box.y + BOX_HEIGHT for y in lanes)


@given(graphs(), st.randoms())
@settings(deadline=None)
def test_the_order_of_the_input_does_not_matter(graph: dict[str, list[str]], random: object) -> None:
    names = list(graph)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert layout({name: list(reversed(graph[name])) for name in names}) == layout(graph)


@given(acyclic())
@settings(deadline=None)
def test_no_layer_is_deeper_than_the_longest_path(graph: dict[str, list[str]]) -> None:
    depth: dict[str, int] = {}

    def longest(name: str) -> int:
        if name not in depth:
            depth[name] = max((longest(dep) + 1 for dep in graph[name]), default=0)
        return depth[name]

    got = layers(graph)
    assert all(got[name] == longest(name) for name in graph if graph[name])
    assert max(got.values(), default=0) == max((longest(name) for name in graph), default=0)


def test_a_source_stands_next_to_its_first_dependent() -> None:
    got = layers({"a": [], "b": ["a"], "c": ["b"], "d": ["c", "late"], "late": []})
    assert got == {"a": 0, "b": 1, "c": 2, "d": 3, "late": 2}


def test_a_cycle_is_drawn_with_one_edge_running_back() -> None:
    drawing = layout({"a": ["b"], "b": ["c"], "c": ["a"]})
    back = [edge for edge in drawing.edges if edge.points[0][0] > edge.points[-1][0]]
    assert len(drawing.edges) == 3
    assert len(back) == 1


def test_two_crossing_edges_are_untangled() -> None:
    drawing = layout({"a": [], "b": [], "x": ["b"], "y": ["a"]})
    by_name = {box.name: box for box in drawing.boxes}
    assert (by_name["a"].y < by_name["b"].y) == (by_name["y"].y < by_name["x"].y)


def test_crossings_are_counted() -> None:
    a, b, x, y = ("a", "", 0), ("b", "", 0), ("x", "", 0), ("y", "", 0)
    assert crossings([[a, b], [x, y]], {a: [], b: [], x: [b], y: [a]}) == 1
    assert crossings([[a, b], [x, y]], {a: [], b: [], x: [a], y: [b]}) == 0
    assert crossings([[a, b], [x, y]], {a: [], b: [], x: [a, b], y: [a, b]}) == 1


def test_a_long_chain_and_many_loose_boxes_need_no_recursion() -> None:
    chain = {f"c{index:04}": [f"c{index - 1:04}"] if index else [] for index in range(1500)}
    assert layout(chain).boxes[-1].layer == 1499
    loose = layout({f"l{index}": [] for index in range(9)})
    assert not boxes_overlap(loose)
    assert loose.edges == ()


def test_nothing_is_an_empty_drawing() -> None:
    assert layout({}).boxes == ()


def test_the_path_is_svg() -> None:
    (edge,) = layout({"a": [], "b": ["a"]}).edges
    assert edge.path == "M176 27C204 27 204 27 232 27"
