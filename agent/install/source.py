"""The releases that an installation puts on the disk. The functions block."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from agent.layout import AGENT, SERVER, Layout
from agent.update.record import Release
from support import version
from support.files import create_file, replace_link, sync_folder
from support.foreign import erase
from uplink import platform

ENTRIES: Final[Mapping[str, str]] = {AGENT: "agent.start", SERVER: "runtime.server.start"}
"""The module of each program."""
PACKAGE: Final = "package:"
"""Beginning of the URL of a release that starts an installed Python package."""


class Staged(NamedTuple):
    """A release whose files are on the disk."""

    program: str
    release: Release


def stage_package(layout: Layout, interpreter: Path | None = None) -> list[Staged]:
    """Stage both programs as they are installed in this Python environment; return the releases.

    The releases contain only a script that starts them: they change with the environment, and need it to stay. This is
    for developers, and for systems whose administrator installs the programs as Python packages.
    """
    python = interpreter or Path(sys.executable)
    return [_stage_script(layout, program, python, module) for program, module in ENTRIES.items()]


def _stage_script(layout: Layout, program: str, python: Path, module: str) -> Staged:
    script = f'#!/bin/sh\nexec {shlex.quote(str(python))} -m {module} "$@"\n'.encode()
    content = script + version().encode()
    sha256 = hashlib.sha256(content).hexdigest()
    release = Release(version(), sha256, len(script), f"{PACKAGE}{python}", platform())
    folder = layout.release(program, sha256)
    if not (folder / "run").exists():
        part = folder.with_name(f"{sha256}.tmp")
        erase(part)
        part.mkdir(parents=True)
        create_file(part / "run", script, 0o755)
        create_file(part / "release.json", msgspec.json.encode(release), 0o644)
        part.replace(folder)
        sync_folder(folder.parent)
    return Staged(program, release)


def point_factory(layout: Layout, staged: Staged) -> None:
    """Let the launcher start this release if neither link leads to one."""
    link = layout.releases(staged.program) / "factory"
    replace_link(link, staged.release.sha256)
