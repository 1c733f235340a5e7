"""Sections of the network in an agent that does not manage it, such as one in --dev-mode."""

from __future__ import annotations

from typing import Any

import pytest

from agent.composition import network_problems
from schema.agent.reading import read_settings


def paths(section: dict[str, Any]) -> list[str]:
    return [problem.path for problem in network_problems(read_settings(None, section)[0])]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({}, []),
        ({"advanced_settings": {"debug": True}}, []),
        ({"network_configuration": {"hotspot_prefix": "lab"}}, ["agent.network_configuration"]),
        ({"additional_networks": {"lab": {"type": "wired"}}}, ["agent.additional_networks"]),
    ],
)
def test_a_section_that_is_ignored_is_a_problem(section: dict[str, Any], expected: list[str]) -> None:
    assert paths(section) == expected
    for problem in network_problems(read_settings(None, section)[0]):
        assert "--install" in problem.remedy
