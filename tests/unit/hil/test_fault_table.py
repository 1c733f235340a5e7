"""The page of hardware faults does not change when it is generated without new measurements."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.hil.image.places import ROOT


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gen_fault_table", ROOT / "tools" / "gen_fault_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_are_read_as_they_were_written(generator: ModuleType) -> None:
    rows = generator.rows_of_page()
    assert any("|" in str(row["seen"]) for row in rows.values())
    assert generator.page(rows) == generator.PAGE.read_text()
