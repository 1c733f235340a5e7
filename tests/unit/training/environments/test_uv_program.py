"""Where uv is looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from training.environments.environments import uv_program


def test_uv_is_named_by_its_real_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The confined process does not see the links that lead there, such as that of an environment."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "link" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert uv_program() == ""
    for folder in ("real", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "uv").touch(0o755)
    assert uv_program() == str(tmp_path / "other" / "uv")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert uv_program() == str(tmp_path / "real" / "uv")
