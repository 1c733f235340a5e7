"""The guest's view of the project's source: a copy, compiled on the host because compiling in the guest is slow."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.hil.image.contents import SOURCE
from tests.hil.image.places import BUILD, ROOT


def share_source(target: Path) -> None:
    """Fill `target` with the present working tree, with hard links to files copied earlier."""
    copy = BUILD / "source"
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "source.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _update(copy)
        shutil.copytree(copy, target, copy_function=os.link, dirs_exist_ok=True)


def _update(copy: Path) -> None:
    """Update the copy and compile changed files."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for path in [path for path in copy.rglob("*") if path.is_file() and "__pycache__" not in path.parts]:
        if str(path.relative_to(copy)) not in names:
            path.unlink()
    for name in names:
        original, path = ROOT / name, copy / name
        if not path.exists() or _stamp(original) != _stamp(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # a running guest may use the old file through its link
            shutil.copy2(original, path)
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    words = [sys.executable, "-m", "compileall", "-q", "-j2", "-s", str(copy), "-p", SOURCE, str(copy)]
    subprocess.run(words, env=env, capture_output=True, check=False)  # a file with an error raises it when it runs


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
