"""The configuration page is current, and its examples are valid."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from schema.document.machine import KEYS, decode_document

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"


def test_page_is_current_and_has_every_key() -> None:
    spec = importlib.util.spec_from_file_location("gen_config_reference", ROOT / "tools" / "gen_config_reference.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    text = (REFERENCE / "configuration.md").read_text()
    assert text == generator.page(), "run make generate"
    assert [key for key in KEYS if f"`{key}`" not in text] == []


@pytest.mark.parametrize("page", ["configuration.md", "logging.md"])
def test_examples_are_right(page: str) -> None:
    examples = re.findall(r"```json\n(.*?)```", (REFERENCE / page).read_text(), re.DOTALL)
    assert examples
    for example in examples:
        decoded = decode_document(example.encode())
        assert (decoded.problems, decoded.warnings) == ((), ())
