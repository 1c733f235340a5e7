"""The machine accepts what the pages show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engine.registry import Registry
from models import BUILTIN
from models.vision.mlmodel.layouts import LAYOUTS
from models.vision.mlmodel.model_output import MAX_BOXES
from models.vision.transform.steps import STEPS
from schema.attributes import decode_attributes
from schema.document import machine
from schema.names import API, Model

HOWTO = Path(__file__).resolve().parents[4] / "docs" / "howto"


def entries(page: str) -> list[dict[str, Any]]:
    """Return every resource entry of a page."""
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", (HOWTO / page).read_text(), re.DOTALL)]
    sections = [block if "api" not in block else {"components": [block]} for block in blocks]
    return [entry for section in sections for kind in ("components", "services") for entry in section.get(kind, ())]


@pytest.mark.parametrize(
    ("page", "count"), [("detect-objects.md", 5), ("move-an-arm.md", 5), ("where-things-are.md", 3)]
)
def test_examples_are_configurations_without_mistakes(page: str, count: int) -> None:
    result = entries(page)
    assert len(result) == count
    for entry in result:
        kind = "components" if ":component:" in entry["api"] else "services"
        decoded = machine.decode_document(json.dumps({kind: [entry]}).encode())
        assert (decoded.problems, decoded.warnings) == ((), ())
        cls = Registry(BUILTIN).find(API.parse(entry["api"]), Model.parse(entry["model"]))
        _, warnings = decode_attributes(cls.Config, entry.get("attributes", {}), path="attributes")
        assert not warnings


def test_every_step_and_layout_is_explained() -> None:
    text = (HOWTO / "detect-objects.md").read_text()
    for name in (*STEPS, *(layout for layout in LAYOUTS if layout != "boxes")):
        assert f"`{name}`" in text
    assert f"more than {MAX_BOXES} detections" in text
