"""The check of the layout: relevant imports, and cycles."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_layout.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_layout", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("graph", "circles"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b"}, "b": {"a"}}, {frozenset("ab")}),
        ({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}, set()),
        ({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}}, {frozenset("bc"), frozenset("de")}),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"b"}}, {frozenset("abcd")}),
    ],
)
def test_circles(check: ModuleType, graph: dict[str, set[str]], circles: set[frozenset[str]]) -> None:
    assert check.cycles_of(graph) == circles


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("import b.c", ["b.c"]),
        ("from b import c", ["b.c"]),
        ("from b import Name", ["b"]),
        ("from b.c import Name", ["b.c"]),
        ("if TYPE_CHECKING:\n    from b import c", ["b.c"]),
        ("def f():\n    from b import c", ["b.c"]),
        ("import os\nfrom a import x", []),
    ],
)
def test_imports_count_wherever_they_stand(check: ModuleType, source: str, result: list[str]) -> None:
    modules = {"a": "a.py", "b": "b/__init__.py", "b.c": "b/c.py"}
    assert list(check.imports_of("a", ast.parse(source), modules)) == result


def test_names_of_modules(check: ModuleType) -> None:
    assert [check.module_of(path) for path in ("a/b.py", "a/__init__.py")] == ["a.b", "a"]
