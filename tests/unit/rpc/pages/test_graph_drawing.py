"""Names of dependencies in the drawing of a graph."""

from __future__ import annotations

from rpc.pages.graph_drawing import full_name

LEFT, RIGHT, TWIN = "rdk:component:motor/left", "rdk:component:motor/right", "rdk:component:servo/left"


def test_a_short_name_is_resolved_if_it_is_the_name_of_a_single_node() -> None:
    assert full_name("left", {LEFT: 1, RIGHT: 2}) == LEFT
    assert full_name("left", {LEFT: 1, TWIN: 2}) == "left"
    assert full_name("middle", {LEFT: 1}) == "middle"
    assert full_name(LEFT, {LEFT: 1}) == LEFT
