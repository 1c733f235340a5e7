from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.hal.inventory.computer import Computer


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    return Computer(tmp_path)
