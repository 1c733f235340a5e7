"""The kernel of User-Mode Linux: the inputs that determine its folder in the cache, and the place of the cache."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hil.uml import kernel
from tests.hil.uml.kernel import HERE, UmlKernel, cache, patches

MINE = UmlKernel("6.12.1-1", "gcc 12")


@pytest.mark.parametrize("other", [replace(MINE, version="6.12.2-1"), replace(MINE, compiler="gcc 13")])
def test_another_source_or_compiler_makes_another_kernel(other: UmlKernel) -> None:
    assert other.digest != MINE.digest
    assert other.folder != MINE.folder


def test_another_patch_makes_another_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = MINE.digest
    extra = tmp_path / "0004-more.patch"
    extra.write_text("--- a\n")
    monkeypatch.setattr(kernel, "patches", lambda: [*patches(), extra])
    assert MINE.digest != before


def test_the_cache_is_outside_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MACHINE_HIL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache() == tmp_path / "machine-runtime" / "hil"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache() == tmp_path / ".cache" / "machine-runtime" / "hil"
    monkeypatch.setenv("MACHINE_HIL_CACHE", str(tmp_path / "mine"))
    assert cache() == tmp_path / "mine"


def test_every_patch_says_what_it_is_for_and_under_which_licence() -> None:
    assert len(patches()) == len(list((HERE / "patches").iterdir()))
    for path in patches():
        head = path.read_text().partition("\n---\n")[0]
        assert head.startswith("SPDX-License-Identifier: GPL-2.0\nSubject: "), path
        assert re.search(r"^Reason here: ", head, re.MULTILINE), path
