"""Every chip has a page, and the configurations that pages show are right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.registry import Registry
from models import BUILTIN
from schema.attributes import decode_attributes
from schema.document.machine import decode_document as decode_machine

ROOT = Path(__file__).resolve().parents[4]
HOWTO = ROOT / "docs" / "howto"

CHIPS = sorted(path for path in (ROOT / "models" / "chips").iterdir() if (path / "model.py").exists())


def blocks(page: Path) -> list[str]:
    return re.findall(r"```json\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("folder", CHIPS, ids=lambda folder: folder.name)
def test_every_chip_has_a_page_with_its_row_and_an_example(folder: Path) -> None:
    page = folder / "page.md"
    models = [name for (_, name), path in BUILTIN.items() if path.startswith(f"models.chips.{folder.name}.")]
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("|")]
    assert models
    for model in models:
        assert any(f"`{model.rpartition(':')[2]}`" in row and row.count("|") == 5 for row in rows)
    assert blocks(page)


EXAMPLES = [HOWTO / "connect-an-i2c-sensor.md", *(ROOT / "models").rglob("page.md")]


@pytest.mark.parametrize("block", [block for page in EXAMPLES for block in blocks(page)])
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
