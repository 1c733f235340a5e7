"""Doors of packages: private names are refused, all public ones can be loaded, and none is loaded too early."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.check_doors import World, breaches, own_names
from tools.gen_doors import Door, doors

LISTED = Path(__file__).with_name("public_api.txt")
OFFERED = ("hal", "nursery_graph", "rig", "rpc", "engine", "runtime.sdk", "training")
"""Packages on which programs of users rely. Those below `runtime` and `training.client` count, too."""
WORLD = World(
    frozenset({"a", "a.door", "a.door.deep", "a.door.words", "a.plain", "b", "b.user"}),
    {"a.door": Door("a.door", Path("a/door/__init__.py"), {"a.door.deep": ["Public"], "a.door.words": []})},
    {"a.plain": frozenset({"offered"})},
)


@pytest.mark.parametrize(
    "line",
    [
        "from a.door import Public",
        "from a.door import words",
        "from a.door.words import short",
        "from a.plain import offered",
        "from a import door",
        "import trio",
    ],
)
def test_public_names_are_accepted(line: str) -> None:
    assert not list(breaches("b/user.py", line, WORLD))


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("from a.door.deep import Public", "write: from a.door import Public"),
        ("from a.door import deep", "add it to the door a.door"),
        ("from a.door import Other", "add it to the door a.door"),
        ("from a.door.deep import Other", "add it to the door of its package"),
        ("from a.plain import other", "add it to the door of its package"),
        ("import a.door.deep", "import its names"),
        ("def run():\n    from a.door.deep import Public", "write: from a.door import Public"),
    ],
)
def test_private_names_are_refused(line: str, remedy: str) -> None:
    [problem] = breaches("b/user.py", line, WORLD)
    assert remedy in problem
    assert not list(breaches("a/other.py", line, WORLD)), "the package itself may look behind its doors"


@pytest.mark.parametrize("door", doors(), ids=lambda door: door.package)
def test_every_public_name_can_be_loaded(door: Door) -> None:
    package = importlib.import_module(door.package)
    assert set(package.__all__) == door.exports
    for name in door.exports:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("door", doors(), ids=lambda door: door.package)
def test_no_module_replaces_a_public_name(door: Door) -> None:
    inside = {path.stem for path in door.path.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    whole = {module.rpartition(".")[2] for module in door.public_modules}
    assert not (door.exports - whole) & inside


def test_opening_all_doors_loads_none_of_their_modules() -> None:
    packages = [door.package for door in doors()]
    program = f"import sys\nfor name in {packages}: __import__(name)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    defining = {module for door in doors() for module in door.names} - {"schema.doors"}
    assert defining.isdisjoint(done.stdout.split())


def public_api() -> Iterator[str]:
    """Yield each public name of the packages in OFFERED."""
    names = {door.package: door.exports for door in doors()}
    names |= {package: own_names(f"{package}/__init__.py") for package in ("nursery_graph", "rig")}
    for package in sorted(names):
        if any(f"{package}.".startswith(f"{offered}.") for offered in OFFERED):
            yield from (f"{package}.{name}" for name in sorted(names[package]))


def test_the_public_api_is_the_one_that_was_reviewed() -> None:
    listed, current = set(LISTED.read_text("utf-8").split()), set(public_api())
    changed = [*(f"- {name}" for name in sorted(listed - current)), *(f"+ {name}" for name in sorted(current - listed))]
    assert changed == [], f"programs of users rely on these names: if the change is meant, change {LISTED.name}, too"
