"""Arguments and environment of a module, and the models it offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.components.sensing.sensor import Sensor
from engine.resource import Resource, model
from runtime.sdk import data_folder
from runtime.sdk.entries import read_entry
from runtime.sdk.offers import OfferedDrivers
from runtime.sdk.start import ModuleStart, parse_start
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.numbers import whole_numbers
from tests.unit.runtime.sdk.drivers import Mean, Thermometer


@pytest.mark.parametrize(
    ("arguments", "environment", "start"),
    [
        (["/tmp/m.sock"], {}, ModuleStart("/tmp/m.sock", "module")),
        (["/tmp/m.sock"], {"VIAM_MODULE_NAME": "demo"}, ModuleStart("/tmp/m.sock", "demo")),
        (["/m", "--log-level=debug"], {}, ModuleStart("/m", "module", level="debug")),
        (["/m", "--log-level", "WARN"], {}, ModuleStart("/m", "module", level="warn")),
        (["--log-level=error", "/m"], {}, ModuleStart("/m", "module", level="error")),
        (["127.0.0.1:4000", "--tcp-mode"], {}, ModuleStart("127.0.0.1:4000", "module", tcp=True)),
        (["127.0.0.1:4000"], {}, ModuleStart("127.0.0.1:4000", "module", tcp=True)),
        (["[::1]:4000"], {}, ModuleStart("[::1]:4000", "module", tcp=True)),
        (["/a:4000"], {}, ModuleStart("/a:4000", "module")),
        (["/m", "--tcp-mode=false"], {"VIAM_TCP_SOCKETS": "true"}, ModuleStart("/m", "module")),
        (["host:1"], {"VIAM_TCP_SOCKETS": "YES"}, ModuleStart("host:1", "module", tcp=True)),
        (["/m"], {"MACHINE_HARDWARE": "sim"}, ModuleStart("/m", "module", hardware="sim")),
        (["/m", "--new=1", "x"], {}, ModuleStart("/m", "module", ignored=("--new=1", "x"))),
    ],
)
def test_arguments(arguments: list[str], environment: dict[str, str], start: ModuleStart) -> None:
    assert parse_start(arguments, environment) == start


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "needs an address to listen on"),
        (["/m", "--log-level=loud"], "'loud' is not a level"),
        (["--x"], "needs an address"),
    ],
)
def test_wrong_arguments(arguments: list[str], words: str) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        parse_start(arguments, {})
    assert caught.value.kind is ErrorKind.INVALID


def test_the_data_folder_is_the_one_that_the_machine_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIAM_MODULE_DATA", "/data/demo")
    assert data_folder() == Path("/data/demo")
    monkeypatch.delenv("VIAM_MODULE_DATA")
    with pytest.raises(ConfigError, match="set VIAM_MODULE_DATA to a folder"):
        data_folder()


class Nameless(Sensor):
    pass


@model("acme:demo:bare")
class Bare(Resource):
    pass


@model("acme:demo:thermometer")
class Again(Sensor):
    pass


@pytest.mark.parametrize(
    ("drivers", "words"),
    [
        ((), "the module has no drivers"),
        ((Nameless,), "Nameless has no model"),
        ((Bare,), "Bare has no known API"),
        ((Thermometer, Again), "Again and Thermometer are both acme:demo:thermometer"),
        ((int,), "is not a driver"),
        (("thermometer",), "is not a driver"),
    ],
)
def test_invalid_offers(drivers: tuple[Any, ...], words: str) -> None:
    with pytest.raises(MachineError, match=words):
        OfferedDrivers(drivers)


def test_models_are_described_by_the_first_line_of_their_class() -> None:
    assert OfferedDrivers([Thermometer, Mean]).describe() == [
        {
            "api": "rdk:component:sensor",
            "model": "acme:demo:thermometer",
            "short_description": "A room that is always as warm.",
        },
        {"api": "rdk:component:generic", "model": "acme:demo:mean", "short_description": "Uses a sensor."},
    ]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"name": "a", "api": "rdk:component:sensor"}, "model"),
        ({"name": "a b", "api": "rdk:component:sensor", "model": "fake"}, "'a b' is not a valid name"),
        ({"name": "a", "api": "sensor", "model": "fake"}, "api"),
        ({"name": "a", "model": "fake"}, "api"),
        ({}, "is missing"),
    ],
)
def test_entries_that_cannot_be_read(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_entry(config)


def test_entries_of_servers_that_do_not_say_the_api() -> None:
    entry = read_entry({"name": "a", "namespace": "", "type": "sensor", "api": "", "model": "acme:demo:x"})
    assert str(entry.name) == "rdk:component:sensor/a"


def test_services_and_levels() -> None:
    level = {"level": "debug"}
    entry = read_entry({"name": "a", "api": "rdk:service:generic", "model": "a:b:c", "log_configuration": level})
    assert str(entry.name) == "rdk:service:generic/a"
    assert entry.log_configuration is not None
    assert entry.log_configuration.level == "debug"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**52), 2**52)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def as_doubles(value: Any) -> Any:
    """Convert integers to floats, as the protocol does."""
    if isinstance(value, bool) or not isinstance(value, int | list | dict):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, list):
        return [as_doubles(each) for each in value]
    return {key: as_doubles(each) for key, each in value.items()}


@given(JSON)
def test_numbers_are_what_they_were(value: Any) -> None:
    back = whole_numbers(as_doubles(value))
    assert back == value
    assert integers(back) >= integers(value)


def integers(value: Any) -> int:
    """Return the number of integers in a value."""
    if isinstance(value, list | dict):
        return sum(map(integers, value.values() if isinstance(value, dict) else value))
    return int(isinstance(value, int) and not isinstance(value, bool))
