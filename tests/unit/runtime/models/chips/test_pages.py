"""The how-to pages show code that ships and configurations that are valid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.registry import Registry
from runtime.models import BUILTIN
from runtime.models.chips import MODELS
from schema.attributes import decode_attributes
from schema.document.machine import decode_document as decode_machine

ROOT = Path(__file__).resolve().parents[5]
HOWTO = ROOT / "docs" / "howto"
SHOWN = (
    ROOT / "hal" / "chips" / "tmp102.py",
    ROOT / "hal" / "sim" / "chips" / "tmp102.py",
    ROOT / "runtime" / "models" / "chips" / "tmp102.py",
    ROOT / "tests" / "unit" / "runtime" / "models" / "chips" / "test_temperature.py",
)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (HOWTO / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("block", blocks("write-a-chip-driver.md", "python"))
def test_the_driver_that_is_shown_is_the_one_that_ships(block: str) -> None:
    assert any(block in path.read_text() for path in SHOWN), block


@pytest.mark.parametrize("block", blocks("connect-an-i2c-sensor.md", "json"))
def test_configurations_that_are_shown_are_right(block: str) -> None:
    decoded = decode_machine(block.encode())
    assert decoded.document is not None
    assert not decoded.problems
    assert not decoded.warnings
    for entry in decoded.document.components:
        cls = Registry(BUILTIN).find(entry.name.api, entry.model)
        _, warnings = decode_attributes(cls.Config, entry.attributes, path="attributes")
        assert not warnings
    assert json.loads(block)["components"]


def test_every_model_is_on_the_page() -> None:
    page = (HOWTO / "connect-an-i2c-sensor.md").read_text()
    for _, model in MODELS:
        assert f"`{model.rpartition(':')[2]}`" in page
