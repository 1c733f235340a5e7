"""The file, the commands, the cloud's pages and the machine report the same findings for every document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloud.editing.catalogue import EditingContext
from cloud.editing.findings import ERROR, findings
from command.check import check
from command.cloud.configurations.config import mistakes
from engine.planning.reconfigure import plan
from engine.registry import Registry
from models import BUILTIN
from models.builtin import builtin_models
from models.check import check_document
from schema.document.machine import decode_document

BOARD = {"name": "pi", "api": "rdk:component:board", "model": "fake"}


def motor(**attributes: Any) -> dict[str, Any]:
    return {"name": "left", "api": "rdk:component:motor", "model": "gpio", "attributes": {"board": "pi", **attributes}}


def sensor(**more: Any) -> dict[str, Any]:
    return {"name": "heat", "api": "rdk:component:sensor", "model": "fake", **more}


def nested(levels: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for _ in range(levels - 1):
        values = {"a": values}
    return values


PINS = {"a": "11", "b": "13"}
TRIGGER = {
    "name": "offline",
    "event": {"type": "part_offline"},
    "notifications": [{"type": "webhook", "value": "https://example.com/hook"}],
}
CORPUS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("right", {"components": [BOARD, motor(pins=PINS)], "triggers": [TRIGGER]}, []),
    (
        "text for a number",
        {"components": [BOARD, motor(pins=PINS, max_rpm="fast")]},
        ["components.1.attributes.max_rpm"],
    ),
    ("empty pins", {"components": [BOARD, motor(pins={})]}, ["components.1.attributes.pins"]),
    ("no pins", {"components": [BOARD, motor()]}, ["components.1.attributes"]),
    ("a rule between keys", {"components": [BOARD, motor(pins=PINS, encoder="e")]}, ["components.1.attributes"]),
    ("unknown built-in model", {"components": [sensor(model="fakee")]}, ["components.0.model"]),
    ("unknown built-in service", {"services": [{"api": "rdk:service:shell", "model": "nix"}]}, ["services.0.model"]),
    (
        "model that is not built",
        {"components": [sensor(name="m", api="rdk:component:camera", model="ffmpeg")]},
        ["components.0.model"],
    ),
    ("API that is not built", {"services": [{"api": "rdk:service:video", "model": "fake"}]}, ["services.0.model"]),
    ("foreign model without a module", {"components": [sensor(model="acme:a:b")]}, ["components.0.model"]),
    (
        "trigger of an unknown type",
        {"triggers": [{**TRIGGER, "event": {"type": "part_on"}}]},
        ["triggers.0.event.type"],
    ),
    ("trigger without a target", {"triggers": [{**TRIGGER, "notifications": []}]}, ["triggers.0.notifications"]),
    ("missing board", {"components": [motor(pins=PINS)]}, ["components.0.attributes"]),
    ("missing dependency", {"components": [sensor(depends_on=["nix"])]}, ["components.0.depends_on.0"]),
    ("cycle", {"components": [sensor(depends_on=["b"]), sensor(name="b", depends_on=["heat"])]}, ["components.0"]),
    ("key that nothing reads", {"components": [sensor(attributes={"x": 1})]}, ["components.0.attributes.x"]),
    (
        "job for nothing",
        {"jobs": [{"name": "j", "schedule": "1s", "resource": "x", "method": "M"}]},
        ["jobs.0.resource"],
    ),
    ("pattern", {"log": [{"pattern": "(", "level": "info"}]}, ["log.0.pattern"]),
    ("frame", {"components": [sensor(frame={"parent": "wrold"})]}, ["components.0.frame.parent"]),
    (
        "no network, and more",
        {"network": {"bind_address": "x"}, "components": [sensor(model="fakee")]},
        ["network.bind_address", "components.0.model"],
    ),
    ("two of a name", {"components": [sensor(), sensor()]}, ["components.0.name", "components.1.name"]),
    ("wrong section", {"components": {}}, ["components"]),
    ("unknown key", {"debugg": 1}, ["debugg"]),
    ("33 levels", {"components": [sensor(attributes=nested(30))]}, ["components.0.attributes.a.a"]),
    ("400 levels", {"agent": nested(400)}, ["agent.a.a.a.a"]),
    (
        "section of the agent",
        {
            "agent": {
                "advanced_settings": {"debugg": True, "viam_server_start_timeout_minutes": "soon"},
                "version_control": {"agent": 5, "viam-server": "banana", "machine-server": "http://example.com/a"},
                "network_configuration": {"hotspot_password": "short", "device_reboot_after_offline_minutes": 1},
                "additional_networks": {"lab": {"type": "wifi", "ssid": "lab", "psk": "tiny"}, "wire": {"type": "x"}},
                "nets": {},
            }
        },
        [
            "agent.nets",
            "agent.advanced_settings.debugg",
            "agent.advanced_settings.viam_server_start_timeout_minutes",
            "agent.version_control.agent",
            "agent.version_control.viam-server",
            "agent.version_control.machine-server",
            "agent.network_configuration.hotspot_password",
            "agent.network_configuration.device_reboot_after_offline_minutes",
            "agent.additional_networks.lab.psk",
            "agent.additional_networks.wire.type",
        ],
    ),
    ("section of the agent of a wrong type", {"agent": {"system_configuration": []}}, ["agent.system_configuration"]),
    ("placeholder", {"components": [BOARD, motor(pins={"a": "${environment.A}"})]}, []),
]


@pytest.mark.parametrize(("document", "paths"), [item[1:] for item in CORPUS], ids=[item[0] for item in CORPUS])
def test_all_find_the_same(document: dict[str, Any], paths: list[str], tmp_path: Path) -> None:
    text = json.dumps(document)
    (tmp_path / "machine.json").write_text(text)
    file = check(tmp_path / "machine.json", Registry(BUILTIN, offers=lambda: ()), {"A": "11"})
    pages = findings(text, EditingContext())
    shared = check_document(decode_document(text.encode()), builtin_models())
    command = mistakes(text)
    if "${" not in text:  # only the machine knows the values of placeholders
        assert list(map(str, file.problems)) == list(map(str, shared.problems))
        assert list(map(str, file.warnings)) == list(map(str, shared.warnings))
    wrong = {(problem.path, _said(problem)) for problem in shared.problems}
    assert {(page.path, page.text) for page in pages if page.severity == ERROR} == wrong
    assert {(item.path, item.text) for item in pages if item.severity != ERROR} == {
        (warning.path, _said(warning)) for warning in shared.warnings
    }
    assert {element.path for element in (*shared.problems, *shared.warnings)} == set(paths)
    assert all(str(result) in command.text for result in (*shared.problems, *shared.warnings))


@pytest.mark.parametrize("document", [item[1] for item in CORPUS], ids=[item[0] for item in CORPUS])
def test_the_machine_builds_nothing_that_the_check_calls_wrong(document: dict[str, Any]) -> None:
    decoded = decode_document(json.dumps(document).encode())
    if decoded.document is None:
        return
    expected = plan(decoded.document, Registry(BUILTIN, offers=lambda: ())).resources.values()
    checked = check_document(decoded, builtin_models())
    entries = [problem for problem in checked.problems if problem.path.startswith(("components", "services"))]
    # The plan does not know cycles, which are a state of the graph.
    wrong = {_name(document, entry.path) for entry in entries if "depend on each other" not in entry.reason}
    faults = {
        _name(document, item.path) for item in expected if item.fault is not None and not item.model.startswith("acme")
    }
    if "${" not in json.dumps(document):
        assert faults == wrong


def _name(document: dict[str, Any], path: str) -> str:
    section, index = path.split(".")[:2]
    return str(document[section][int(index)].get("name"))


def _said(error: Any) -> str:
    return f"{error.reason}: {error.remedy}" if error.remedy else str(error.reason)
