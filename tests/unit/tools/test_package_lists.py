"""The lists of packages: each names the same ones."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import Path

from tools.check_sizes import PACKAGES

ROOT = Path(__file__).resolve().parents[3]


def test_all_lists_name_the_same_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    on_disk = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "tools", "bench"}
    assert set(PACKAGES) == on_disk
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == on_disk
    assert set(project["tool"]["mypy"]["packages"]) == on_disk
    assert set(contracts["importlinter"]["root_packages"].split()) == on_disk
