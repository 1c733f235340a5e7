"""The public names, and the allowed imports of the package."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import nursery_graph

PACKAGE = Path(nursery_graph.__file__).parent
PUBLIC = {
    "Changes",
    "CurrentNode",
    "FailureCount",
    "Graph",
    "Node",
    "NodeStatus",
    "Overdue",
    "ProcessFailed",
    "ProcessGroup",
    "Restart",
    "Run",
    "Snapshot",
    "State",
    "Transition",
    "back_off",
    "current_node",
    "cyclic_groups",
    "process_group",
    "supervise",
}


def imports(path: Path) -> set[str]:
    results = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            results |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            results.add((node.module or "").partition(".")[0])
    return results


def test_public_names() -> None:
    submodules = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    assert {name for name in vars(nursery_graph) if not name.startswith("_")} - submodules == PUBLIC
    assert all(getattr(nursery_graph, name).__doc__ for name in PUBLIC)


def test_it_needs_trio_and_the_standard_library_only() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert imports(path) <= {*sys.stdlib_module_names, "trio", "nursery_graph"}, path.name
        assert not imports(path) & {"threading", "asyncio"}, path.name


@pytest.mark.parametrize("module", ["lifecycle", "restart", "plan", "status", "failures"])
def test_decisions_are_pure(module: str) -> None:
    forbidden = {"trio", "socket", "os", "subprocess", "time", "random"}
    assert not imports(PACKAGE / f"{module}.py") & forbidden
