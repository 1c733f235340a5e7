"""docs/reference/agent-settings.md: current, complete, and its example is valid."""

from __future__ import annotations

import json
import re

import pytest

from schema.agent.reading import SECTIONS
from schema.agent.records import AdditionalNetwork
from schema.agent.rules import extra_of, fields_of
from tests.unit.schema.agent.tables import KEYS, NETWORK_KEYS, Key, from_cloud
from tools.gen_agent_settings import PAGE, page

TEXT = PAGE.read_text("utf-8")


def row(section: str, key: str) -> list[str]:
    """Return the cells of a key: key, type, default, range, unit, meaning."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    (line,) = re.findall(rf"^\| (`{key}` \|.*) \|$", text, re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


def test_the_page_is_current() -> None:
    assert page() == TEXT, "run make generate"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.key)
def test_every_key_has_a_row_with_its_default(key: Key) -> None:
    _, kind, default, allowed, unit, meaning = row(key.section, key.key)
    assert kind
    assert len(meaning) > 20
    if unit in ("minutes", "hours"):
        shown = f"`{key.default / (60 if unit == 'minutes' else 3600):g}`"
    elif key.default is None:
        shown = "unset"
    else:
        shown = f"`{str(key.default).lower()}`" if key.default or key.default is False else "empty"
    assert default == shown
    if {"rule", "time"} & extra(key).keys():
        assert f"write {allowed}" in {remedy for _, remedy in key.invalid}


def extra(key: Key) -> dict[str, object]:
    return dict(extra_of(fields_of(SECTIONS[key.section])[key.key]))


@pytest.mark.parametrize("key", NETWORK_KEYS)
def test_every_key_of_a_network_has_a_row(key: str) -> None:
    assert (row("additional_networks", key)[2] == "**required**") is fields_of(AdditionalNetwork)[key].required


def test_the_example_is_valid() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    settings, paths = from_cloud(json.loads(example))
    assert paths == []
    assert settings.additional_networks["office"].priority == 10
