"""What the cloud says, as a person reads it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from runtime.operator.cloud_show import history, was

OLD: dict[str, Any] = {
    "components": [{"name": "a", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": 200}}]
}


def entry(**old: Any) -> dict[str, Any]:
    return {"old": old, "when": datetime(2026, 1, 1, tzinfo=UTC), "edited_by": {"value": "key"}}


def test_numbers_of_a_former_configuration_are_as_they_were_written() -> None:
    as_doubles = {"components": [{**OLD["components"][0], "attributes": {"max_rpm": 200.0}}]}
    text = '{"interval": 5, "ratio": 1.0}'
    assert repr(was(entry(robot_config=as_doubles))) == repr(OLD)
    assert repr(was(entry(robot_config={"ratio": 1}, robot_config_json=text))) == "{'interval': 5, 'ratio': 1.0}"
    new = {"components": [{**OLD["components"][0], "attributes": {"max_rpm": 150}}]}
    lines = "\n".join(history([entry(robot_config=as_doubles)], new))
    assert "200 -> 150" in lines
