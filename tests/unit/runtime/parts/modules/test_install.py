"""Removal of the files of a module."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from runtime.programs import archive, install


@pytest.mark.parametrize("leftovers", [(), ("demo.removed",), ("demo.removed", "demo.removed-2")])
async def test_folders_are_deleted_in_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leftovers: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    for name in ("demo", "demo-2", *leftovers):
        (data / name).mkdir(parents=True)
        (data / name / "file").write_bytes(b"kept by a module")
    threads: set[int] = set()
    remove_tree = archive.remove_tree

    def remove(folder: Path) -> None:
        threads.add(threading.get_ident())
        remove_tree(folder)

    monkeypatch.setattr(archive, "remove_tree", remove)
    await install.remove("demo", data, {"MACHINE_HOME": str(tmp_path)})
    assert os.listdir(data) == ["demo-2"], "another module keeps its data"
    assert threads
    assert threading.get_ident() not in threads, "the event loop is not blocked"
