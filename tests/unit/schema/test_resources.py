"""Forms of a resource entry and their meaning."""

from __future__ import annotations

from typing import Any

import pytest

from schema.document.machine import decode_document_value
from schema.document.resources import ResourceEntry


def entry(section: str = "components", **parts: Any) -> ResourceEntry:
    decoded = decode_document_value({section: [parts]})
    assert decoded.problems == ()
    assert decoded.document is not None
    (result,) = decoded.document.resources
    return result


@pytest.mark.parametrize(
    ("section", "parts", "name"),
    [
        ("components", {"api": "acme:component:drill"}, "acme:component:drill/a"),
        (
            "components",
            {"api": {"namespace": "acme", "type": "component", "subtype": "drill"}},
            "acme:component:drill/a",
        ),
        ("components", {"api": {"subtype": "motor"}}, "rdk:component:motor/a"),
        ("components", {"type": "motor"}, "rdk:component:motor/a"),
        ("components", {"type": "motor", "namespace": "acme"}, "acme:component:motor/a"),
        ("services", {"type": "vision"}, "rdk:service:vision/a"),
    ],
)
def test_forms_of_api(section: str, parts: dict[str, Any], name: str) -> None:
    assert str(entry(section, name="a", model="fake", **parts).name) == name


@pytest.mark.parametrize(
    ("value", "model"),
    [
        ("fake", "rdk:builtin:fake"),
        ("a:b:c", "a:b:c"),
        ({"name": "c"}, "rdk:builtin:c"),
        ({"namespace": "a", "model_family": "b", "name": "c"}, "a:b:c"),
        ({"namespace": "", "model_family": "", "name": "c"}, "rdk:builtin:c"),
    ],
)
def test_forms_of_model(value: Any, model: str) -> None:
    assert str(entry(name="a", type="motor", model=value).model) == model


def test_a_service_may_leave_out_name_and_model() -> None:
    service = entry("services", api="rdk:service:motion")
    assert (service.name.name, str(service.model)) == ("builtin", "rdk:builtin:builtin")


@pytest.mark.parametrize(
    ("section", "parts", "problem"),
    [
        ("components", {"type": "motor", "model": "m"}, "components.0: 'name' is missing"),
        ("components", {"name": "a", "model": "m"}, "components.0: 'api' is missing"),
        ("components", {"name": "a", "type": "motor"}, "components.0: 'model' is missing"),
        ("components", {"name": "a", "api": "motor", "model": "m"}, "components.0.api: 'motor' is not an API"),
        (
            "components",
            {"name": "a", "type": "mo:tor", "model": "m"},
            "components.0.type: 'rdk:component:mo:tor' is not",
        ),
        ("components", {"name": "a", "type": "motor", "model": "a:b"}, "components.0.model: 'a:b' is not a model"),
        ("components", {"name": "a", "type": "motor", "model": {}}, "components.0.model: 'name' is missing"),
        ("components", {"name": "a", "type": "motor", "model": 3}, "components.0.model: must be a"),
        ("components", {"name": "a", "type": 3, "model": "m"}, "components.0.type: must be a"),
        ("components", {"name": "a", "api": 3, "model": "m"}, "components.0.api: must be a"),
        ("components", {"name": "a:b", "type": "motor", "model": "m"}, "components.0.name: 'a:b' is not a valid name"),
        ("components", {"name": "a" * 61, "type": "motor", "model": "m"}, "has 61 characters"),
        ("components", {"name": 3, "type": "motor", "model": "m"}, "components.0.name: must be a"),
        ("components", {"name": "a", "api": "rdk:service:motion", "model": "m"}, "move the entry to 'services'"),
        ("services", {"name": "a", "api": "rdk:component:motor", "model": "m"}, "move the entry to 'components'"),
        ("services", {"name": "a", "api": "rdk:gizmo:motor", "model": "m"}, "write rdk:service:motor"),
        (
            "components",
            {"name": "a", "type": "motor", "model": "m", "depends_on": ["a"]},
            "components.0.depends_on.0: the resource depends on itself",
        ),
        (
            "components",
            {"name": "a", "type": "motor", "model": "m", "depends_on": ["x:y/z"]},
            "components.0.depends_on.0: 'x:y' is not an API",
        ),
        (
            "components",
            {"name": "a", "type": "motor", "model": "m", "log_configuration": {"level": "loud"}},
            "components.0.log_configuration.level: 'loud' is not a level",
        ),
        (
            "components",
            {"name": "a", "type": "motor", "model": "m", "service_configs": [{"attributes": {}}]},
            "components.0.service_configs.0: 'type' is missing",
        ),
    ],
)
def test_mistakes_name_path_value_and_remedy(section: str, parts: dict[str, Any], problem: str) -> None:
    decoded = decode_document_value({section: [parts]})
    assert len(decoded.problems) == 1
    assert problem in str(decoded.problems[0])
    assert decoded.problems[0].remedy


def test_the_rest_of_an_entry() -> None:
    full = entry(
        name="a",
        type="motor",
        model="m",
        depends_on=["b", "rdk:component:board/c", "b"],
        log_configuration={"level": "Debug"},
        service_configs=[{"type": "data_manager", "attributes": {"capture_methods": []}}],
        frame={"parent": "b"},
    )
    assert full.depends_on == ("b", "rdk:component:board/c")
    assert full.log_configuration is not None
    assert full.log_configuration.level == "Debug"
    assert full.service_configs[0].attributes == {"capture_methods": []}
    assert full.frame is not None
    assert full.frame.parent == "b"


def test_version_changes_with_what_the_driver_sees_and_with_nothing_else() -> None:
    base: dict[str, Any] = {"name": "a", "type": "motor", "model": "m", "attributes": {"x": 1, "y": 2}}
    version = entry(**base).version
    same: list[dict[str, Any]] = [
        {"attributes": {"y": 2, "x": 1}},
        {"log_configuration": {"level": "debug"}},
        {"frame": {"parent": "world"}},
        {"service_configs": [{"type": "x"}]},
    ]
    other: list[dict[str, Any]] = [
        {"attributes": {"x": 1, "y": 3}},
        {"attributes": {"x": True, "y": 2}},
        {"model": "n"},
        {"name": "b"},
        {"type": "servo"},
        {"depends_on": ["c"]},
    ]
    assert {entry(**(base | change)).version for change in same} == {version}
    versions = [entry(**(base | change)).version for change in other]
    assert len({version, *versions}) == len(other) + 1


def test_equality_ignores_where_the_entry_stands() -> None:
    parts = {"name": "a", "type": "motor", "model": "m"}
    decoded = decode_document_value({"components": [{"name": "b", "type": "motor", "model": "m"}, parts]})
    assert decoded.document is not None
    moved = decoded.document.components[1]
    assert moved.path == "components.1"
    assert moved == entry(**parts)
