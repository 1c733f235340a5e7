"""The graph of nodes as text, as DOT for Graphviz, and as SVG. Pure, except for the layout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final
from xml.sax.saxutils import escape

from engine.planning import state_of
from nursery_graph import NodeStatus, Snapshot, State

COLOURS: Final[Mapping[State, str]] = {
    State.READY: "#2e7d32",
    State.CONFIGURING: "#1565c0",
    State.UNHEALTHY: "#c62828",
    State.REMOVING: "#ef6c00",
    State.UNCONFIGURED: "#757575",
}


def as_text(snapshot: Snapshot) -> str:
    """Return a paragraph for each node: state, reason, number of starts, dependencies."""
    lines = []
    for name, node in sorted(snapshot.nodes.items()):
        reason = f" ({node.reason})" if node.reason else ""
        lines.append(f"{name}: {state_of(node).value}{reason}, started {node.runs} times")
        lines += [f"  requires {other}" for other in sorted(node.requires)]
        lines += [f"  uses {other}" for other in sorted(node.uses)]
        lines += [f"  waits for {other}" for other in node.waiting_for]
    return "\n".join(lines) + "\n"


def as_dot(snapshot: Snapshot) -> str:
    """Return a graph in the DOT language. Edges lead to dependencies; dashed ones to optional dependencies."""
    lines = ["digraph machine {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for name, node in sorted(snapshot.nodes.items()):
        tooltip = _quoted(node.reason or state_of(node).value)
        lines.append(f'  {_quoted(name)} [color="{COLOURS[state_of(node)]}", tooltip={tooltip}];')
        lines += [f"  {_quoted(name)} -> {_quoted(other)};" for other in sorted(node.requires)]
        lines += [f"  {_quoted(name)} -> {_quoted(other)} [style=dashed];" for other in sorted(node.uses)]
    return "\n".join([*lines, "}"]) + "\n"


def as_svg(snapshot: Snapshot) -> str:
    """Return an SVG. Dependencies are left of their dependents."""
    from rpc.pages import BOX_HEIGHT, BOX_WIDTH, layout
    from support.text.words import short, shorten

    plan = layout({name: node.requires | node.uses for name, node in snapshot.nodes.items()})
    parts = [f'<path d="{edge.path}" fill="none" stroke="#999"/>' for edge in plan.edges]
    for box in plan.boxes:
        node: NodeStatus = snapshot.nodes[box.name]
        about = escape(f"{box.name}: {state_of(node).value} {node.reason}")
        name, api = escape(shorten(short(box.name), 26)), escape(shorten(box.name.partition("/")[0], 30))
        parts.append(
            f'<g transform="translate({box.x:g},{box.y:g})"><title>{about}</title>'
            f'<rect width="{BOX_WIDTH:g}" height="{BOX_HEIGHT:g}" rx="4" fill="white" '
            f'stroke="{COLOURS[state_of(node)]}"/>'
            f'<text x="8" y="16">{name}</text><text x="8" y="31" fill="#666" font-size="10">{api}</text></g>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{plan.width:g}" height="{plan.height:g}" '
        'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
