"""Capture settings in documents and from a control sensor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from trio.testing import MockClock

from engine.components.sensing.sensor import Sensor
from engine.resource import Extra, Value
from models.data_manager.attributes import DataManagerConfig
from runtime.parts.data.capture.control import Override, overridden, parse_overrides
from runtime.parts.data.capture.settings import ConfiguredCapture, configured_captures
from schema.attributes import decode_attributes as decode_attributes
from schema.document.machine import MachineDocument, decode_document_value
from schema.errors import ConfigError, MachineError
from schema.names import ResourceName
from tests.unit.runtime.parts.data import machines
from tests.unit.runtime.parts.data.machines import Counting, capturing, contents, machine, numbers, readings, sensor


def read(document: Mapping[str, Any]) -> MachineDocument:
    decoded = decode_document_value(document)
    assert not decoded.problems, decoded.problems
    assert decoded.document is not None
    return decoded.document


def captures_of(*methods: Any, api: str = "rdk:component:sensor") -> list[ConfiguredCapture]:
    entry = {"name": "s", "api": api, "model": "fake", "service_configs": capturing(*methods)}
    return configured_captures(read({"components": [entry]}))


PATH = "components.0.service_configs.0.attributes.capture_methods"


def test_a_method_in_the_published_form() -> None:
    (capture,) = captures_of(
        {
            "method": "Readings",
            "capture_frequency_hz": 0.2,
            "additional_params": {},
            "disabled": False,
            "capture_queue_size": 9,
            "tags": ["a"],
            "recent_data_store": {"stored_hours": 24},
        }
    )
    assert (capture.key, capture.resource) == ("rdk:component:sensor/s Readings", "rdk:component:sensor/s")
    assert (capture.frequency, capture.queue, capture.tags, capture.fault) == (0.2, 9, ("a",), None)
    assert capture.source is not None
    assert capture.source.component_type == "rdk:component:sensor"


def test_both_names_of_the_service_are_accepted() -> None:
    entry = sensor(1)
    entry["service_configs"][0]["type"] = "rdk:service:data_manager"
    assert len(configured_captures(read({"components": [entry]}))) == 1
    entry["service_configs"][0]["type"] = "something_else"
    assert configured_captures(read({"components": [entry]})) == []


@pytest.mark.parametrize(
    ("item", "path", "words"),
    [
        ({"method": "Reading"}, "0.method", "did you mean 'Readings'?"),
        ({"method": "Readings", "capture_frequency_hz": -1}, "0.capture_frequency_hz", "not a frequency"),
        ({"method": "Readings", "capture_queue_size": -1}, "0.capture_queue_size", "negative"),
        ({"method": "Readings", "capture_frequency_hz": "fast"}, "0.capture_frequency_hz", "must be a number"),
        ({"method": "Readings", "additional_params": {"x": 1}}, "0.additional_params.x", "no such parameter"),
        ({}, "0", "'method' is missing"),
        ("Readings", "0", "is not an object"),
    ],
)
def test_a_mistake_is_reported_with_its_path(item: Any, path: str, words: str) -> None:
    capture, good = captures_of(item, readings(1))
    assert capture.fault is not None
    assert capture.fault.path == f"{PATH}.{path}"
    assert words in str(capture.fault)
    assert good.fault is None


def test_methods_that_are_not_a_list_are_a_mistake() -> None:
    entry = sensor(1)
    entry["service_configs"][0]["attributes"]["capture_methods"] = {"method": "Readings"}
    (capture,) = configured_captures(read({"components": [entry]}))
    assert capture.fault is not None
    assert capture.fault.path == PATH


def test_a_duplicate_is_a_mistake_and_the_first_one_is_used() -> None:
    first, second = captures_of(readings(1), readings(2))
    assert first.fault is None
    assert second.fault is not None
    assert f"is already captured by {PATH}.0" in str(second.fault)
    assert first.key != second.key


def test_a_method_with_other_parameters_is_a_separate_capture() -> None:
    first, two = captures_of(
        *({"method": "Gpios", "capture_frequency_hz": 1, "additional_params": {"pin_name": pin}} for pin in "ab"),
        api="rdk:component:board",
    )
    assert first.fault is None
    assert two.fault is None
    assert first.key == 'rdk:component:board/s Gpios {"pin_name":"a"}'


def test_resources_of_remotes_are_named_in_the_entry_of_the_remote() -> None:
    method = readings(1, name="rdk:component:sensor/thermometer")
    remote = {
        "name": "pi",
        "address": "pi.local",
        "prefix": "lab-",
        "service_configs": capturing(method, readings(1, name="thermometer")),
    }
    capture, wrong = configured_captures(read({"remotes": [remote]}))
    assert capture.resource == "rdk:component:sensor/pi:lab-thermometer"
    assert capture.source is not None
    assert capture.source.component_name == "thermometer", "as the remote calls it"
    assert wrong.fault is not None
    assert wrong.fault.path == "remotes.0.service_configs.0.attributes.capture_methods.1.name"


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"capture_frequency_hz": 2}, False),
        ({"tags": ["x"]}, False),
        ({"capture_queue_size": 7}, False),
        ({"capture_buffer_size": 7}, True),
    ],
)
def test_capture_restarts_only_for_relevant_changes(change: dict[str, Any], same: bool) -> None:
    (item,), (two,) = captures_of(readings(1)), captures_of(readings(1) | change)
    assert (item.version == two.version) is same


# ---- attributes of the data manager


def test_defaults_are_the_published_ones() -> None:
    config, _ = decode_attributes(DataManagerConfig, {}, path="p")
    assert config.maximum_capture_file_size_bytes == 262144
    assert (config.disk_usage_deletion_threshold, config.capture_dir_deletion_threshold) == (0.9, 0.5)
    assert config.delete_every_nth_when_disk_full == 5
    assert config.sync_interval_mins == 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sync_interval_mins", -0.1),
        ("maximum_num_sync_threads", -1),
        ("file_last_modified_millis", -1),
        ("maximum_capture_file_size_bytes", -1),
        ("maximum_capture_file_size_bytes", 0),
        ("delete_every_nth_when_disk_full", 0),
        ("disk_usage_deletion_threshold", 1.1),
        ("capture_dir_deletion_threshold", -0.5),
    ],
)
def test_numbers_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        decode_attributes(DataManagerConfig, {name: value}, path="p")


# ---- a sensor that controls capture


def test_overrides_as_published() -> None:
    parsed = parse_overrides(
        {
            "o": [
                {"resource_name": "s", "method": "Readings", "capture_frequency_hz": 5, "tags": ["event"]},
                {"resource_name": "t", "method": "Readings"},
            ]
        },
        "o",
    )
    assert parsed == (Override("s", "Readings", 5.0, ("event",)), Override("t", "Readings"))
    assert parse_overrides({"o": []}, "o") == ()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"p": []}, "no 'o'"),
        ({"o": "x"}, "is not a list"),
        ({"o": ["x"]}, "o.0 is not an object"),
        ({"o": [{"method": "Readings"}]}, "must have resource_name and method"),
        ({"o": [{"resource_name": "s", "method": "R", "capture_frequency_hz": -1}]}, "not a frequency"),
        ({"o": [{"resource_name": "s", "method": "R", "capture_frequency_hz": True}]}, "not a frequency"),
        ({"o": [{"resource_name": "s", "method": "R", "tags": "x"}]}, "not a list of strings"),
    ],
)
def test_readings_that_are_not_overrides(value: Any, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        parse_overrides(value, "o")


NAMES = [ResourceName.parse("rdk:component:sensor/s"), ResourceName.parse("rdk:component:board/b")]


def test_an_override_changes_the_named_capture() -> None:
    (capture,), problems = overridden(captures_of(readings(1, tags=["t"])), [Override("s", "Readings", 5.0)], NAMES)
    assert (capture.frequency, capture.tags, capture.only_these_tags) == (5.0, ("t",), False)
    (capture,), _ = overridden(captures_of(readings(1)), [Override("s", "Readings", 0.0)], NAMES)
    assert not capture.active
    (capture,), _ = overridden(captures_of(readings(1)), [Override("s", "Readings", None, ("e",))], NAMES)
    assert (capture.frequency, capture.tags, capture.only_these_tags) == (1.0, ("e",), True)
    assert problems == []


def test_an_override_may_capture_a_method_that_is_not_configured() -> None:
    (capture,), problems = overridden([], [Override("s", "Readings", 5.0)], NAMES)
    assert (capture.resource, capture.frequency) == ("rdk:component:sensor/s", 5.0)
    assert overridden([], [Override("s", "Readings")], NAMES) == ([], []), "without a frequency it asks for nothing"
    assert problems == []


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (Override("x", "Readings", 1.0), "no resource 'x'"),
        (Override("s", "Reading", 1.0), "did you mean 'Readings'"),
        (Override("b", "Gpios", 1.0), "'pin_name' is missing"),
    ],
)
def test_an_invalid_override_is_left_out(override: Override, words: str) -> None:
    result, (problem,) = overridden(captures_of(readings(1)), [override], NAMES)
    assert [capture.frequency for capture in result] == [1.0]
    assert words in str(problem)


class Controlling(Sensor):
    """Return `says` as readings."""

    says: ClassVar[Any] = {"o": []}

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        await trio.lowlevel.checkpoint()
        if isinstance(self.says, Exception):
            raise self.says
        result: Mapping[str, Value] = self.says
        return result


@pytest.fixture
def controlled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the model `controlling` to the machines of these tests."""
    with_it = machines.registry

    def registry() -> Any:
        result = with_it()
        result._paths[("rdk:component:sensor", "rdk:builtin:controlling")] = f"{__name__}:Controlling"
        return result

    monkeypatch.setattr(machines, "registry", registry)


CONTROL = {"name": "control", "api": "rdk:component:sensor", "model": "controlling"}
CONTROLLED = {"capture_control_sensor": {"name": "control", "key": "o"}}


async def readings_within(seconds: float) -> int:
    before = len(Counting.returned)
    await trio.sleep(seconds)
    return len(Counting.returned) - before


@pytest.mark.usefixtures("controlled")
async def test_a_sensor_controls_capture_while_the_machine_runs(autojump_clock: MockClock, tmp_path: Path) -> None:
    Controlling.says = {"o": []}
    silent = {"name": "silent", "api": "rdk:component:sensor", "model": "fake"}
    async with machine(tmp_path, sensor(1), CONTROL, silent, tags=["service"], **CONTROLLED):
        assert await readings_within(10) == pytest.approx(10, abs=1)
        event = {"resource_name": "s", "method": "Readings", "capture_frequency_hz": 10, "tags": ["event"]}
        more = {"resource_name": "silent", "method": "Readings", "capture_frequency_hz": 5}
        Controlling.says = {"o": [event, more]}
        await trio.sleep(1)
        assert await readings_within(10) == pytest.approx(100, abs=1)
        Controlling.says = {"o": [{"resource_name": "s", "method": "Readings", "capture_frequency_hz": 0}]}
        await trio.sleep(1)
        assert await readings_within(10) == 0
        Controlling.says = ValueError("broken")
        await trio.sleep(1)
        assert await readings_within(10) == pytest.approx(10, abs=1), "as configured"
    assert numbers(tmp_path) == list(range(len(Counting.returned)))
    tags = {
        (content.header.component_name, tuple(content.header.tags)): len(content.readings)
        for content in contents(tmp_path)
    }
    assert tags[("s", ("event",))] > 100
    assert ("s", ("service",)) in tags
    assert 50 <= tags[("silent", ("service",))] <= 56


@pytest.mark.usefixtures("controlled")
async def test_without_the_control_sensor_capture_is_as_configured(autojump_clock: MockClock, tmp_path: Path) -> None:
    Controlling.says = {"o": [{"resource_name": "s", "method": "Readings", "capture_frequency_hz": 0}]}
    async with machine(tmp_path, sensor(1), CONTROL, **CONTROLLED) as memory:
        await trio.sleep(1)
        assert await readings_within(10) == 0
        memory.write(json.dumps(machines.document(tmp_path, sensor(1), **CONTROLLED)).encode())
        await trio.sleep(1)
        assert await readings_within(10) == pytest.approx(10, abs=1)
        node = memory.graph.snapshot().nodes["internal/capture-control"]
        assert node.waiting_for == ("rdk:component:sensor/control",)
