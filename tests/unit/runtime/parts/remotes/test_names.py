"""Names of resources of remotes, which of them are published, and which names clients may use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.components.motion.motor import Motor
from engine.components.sensing.sensor import Sensor
from engine.planning.remote_names import MAX_DEPTH, RemoteReport, behind, is_usable, name_here, usable_names
from schema.directory import Directory, aliases_of
from schema.errors import ConfigError, MachineError
from schema.names import ResourceName

MOTOR, SENSOR = "rdk:component:motor", "rdk:component:sensor"
ME = "this machine"


def name(text: str) -> ResourceName:
    return ResourceName.parse(text)


@pytest.mark.parametrize(
    ("there", "prefix", "here"),
    [
        ("left", "", "pi:left"),
        ("left", "lab-", "pi:lab-left"),
        ("deck:left", "", "pi:deck:left"),
        ("deck:left", "lab-", "pi:deck:lab-left"),
    ],
)
def test_names_here(there: str, prefix: str, here: str) -> None:
    assert str(name_here(name(f"{MOTOR}/{there}"), "pi", prefix)) == f"{MOTOR}/{here}"


@pytest.mark.parametrize(
    ("full", "expected"),
    [
        (f"{MOTOR}/left", True),
        ("rdk:service:motion/builtin", False),
        ("rdk:service:motion/deck:builtin", False),
        ("rdk:service:vision/eyes", True),
        ("rdk:component:motor/builtin", True),
        ("rdk-internal:service:cloud/builtin", False),
        ("rdk-internal:remote:machine/deck", False),
        (f"{MOTOR}/{'a:' * (MAX_DEPTH - 1)}left", True),
        (f"{MOTOR}/{'a:' * MAX_DEPTH}left", False),
    ],
)
def test_resources_that_are_never_taken_over(full: str, expected: bool) -> None:
    assert is_usable(name(full), {}, ME) is expected


@pytest.mark.parametrize(
    ("chain", "expected"),
    [("left", True), ("a:left", False), ("a:b:left", False), ("c:left", True), ("c:a:left", False)],
)
def test_own_resources_are_not_taken_over_through_other_machines(chain: str, expected: bool) -> None:
    machines = {"": "remote", "a": ME, "a:b": "third", "c": "third", "c:a": ME}
    assert is_usable(name(f"{MOTOR}/{chain}"), machines, ME) is expected


def test_a_machine_that_is_its_own_remote_has_nothing_from_it() -> None:
    report = RemoteReport(frozenset({name(f"{MOTOR}/left")}), machines={"": ME})
    assert usable_names(report, (), ME) == set()


def test_resources_kept_while_the_remote_is_not_ready() -> None:
    ready, ill, gone, new = (name(f"{MOTOR}/{text}") for text in ("ready", "ill", "gone", "new"))
    before = {ready, ill, gone}
    report = RemoteReport(frozenset({ready}), {ill: "unhealthy: unplugged", new: "configuring"})
    assert usable_names(report, before, ME) == {ready, ill}
    starting = RemoteReport(frozenset({ready}), {ill: "unconfigured"}, starting=True)
    assert usable_names(starting, before, ME) == {ready, ill, gone}


def test_machines_behind_a_chain() -> None:
    assert dict(behind("pi", {"": "one", "deck": "two"})) == {"pi": "one", "pi:deck": "two"}
    assert dict(behind("pi", {":".join("a" * MAX_DEPTH): "far"})) == {}


NAMES = [
    f"{MOTOR}/left",
    f"{MOTOR}/pi:left",
    f"{MOTOR}/pi:right",
    f"{SENSOR}/pi:deck:air",
    f"{SENSOR}/pi:water",
    f"{SENSOR}/jetson:water",
]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("left", f"{MOTOR}/left"),  # the machine's own resource has priority
        (f"{MOTOR}/left", f"{MOTOR}/left"),
        ("pi:left", f"{MOTOR}/pi:left"),
        (f"{MOTOR}/pi:left", f"{MOTOR}/pi:left"),
        ("right", f"{MOTOR}/pi:right"),
        (f"{MOTOR}/right", f"{MOTOR}/pi:right"),
        ("air", f"{SENSOR}/pi:deck:air"),
        ("pi:deck:air", f"{SENSOR}/pi:deck:air"),
        ("jetson:water", f"{SENSOR}/jetson:water"),
    ],
)
def test_names_that_people_write(text: str, meant: str) -> None:
    assert Directory(map(name, NAMES)).resolve(text, "x") == meant


@pytest.mark.parametrize("text", ["water", f"{SENSOR}/water"])
def test_a_name_that_two_remotes_have_is_nobodys(text: str) -> None:
    with pytest.raises(ConfigError, match=r"may be .*jetson:water or .*pi:water"):
        Directory(map(name, NAMES)).resolve(text, "x")


def test_a_wildcard_means_the_machines_own() -> None:
    assert Directory(map(name, NAMES)).of_api(MOTOR) == [f"{MOTOR}/left"]


def test_the_error_for_a_missing_name_lists_remotes_that_may_have_it() -> None:
    directory = Directory(map(name, NAMES), lambda text: "the remote pi is not connected" if "pi:" in text else "")
    with pytest.raises(ConfigError, match="the remote pi is not connected"):
        directory.resolve("pi:lefd", "x")
    with pytest.raises(ConfigError, match="left"):
        directory.resolve("lefd", "x")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("left", f"{MOTOR}/left"),
        ("pi:left", f"{MOTOR}/pi:left"),
        ("right", f"{MOTOR}/pi:right"),
        (f"{MOTOR}/right", f"{MOTOR}/pi:right"),
        ("air", None),
    ],
)
def test_a_driver_finds_what_its_entry_names(text: str, meant: str | None) -> None:
    driver: Motor = object.__new__(Motor)
    driver.name = name(f"{MOTOR}/driver")
    driver.dependencies = {
        item: object.__new__(Motor if item.api == Motor.API else Sensor) for item in map(name, NAMES)
    }
    if meant is None:
        with pytest.raises(MachineError, match="no motor named 'air'"):
            driver.dependency(Motor, text)
    else:
        assert driver.dependency(Motor, text) is driver.dependencies[name(meant)]


@given(st.lists(st.sampled_from(NAMES), unique=True))
def test_aliases_never_hide_a_machines_own(present: list[str]) -> None:
    aliases = aliases_of(map(name, present))
    assert not aliases.keys() & set(present)
    for short, meant in aliases.items():
        assert set(meant) <= set(present)
        assert all(name(item).name == name(short).name and name(item).remotes for item in meant)
