"""Install release files into the running system of the guest.

python3 -m tests.hil.agent.stage FILE... [credentials=FILE] [release_root=FILE]
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from functools import partial
from pathlib import Path

from agent.actions.disk import download_path, stage
from agent.install.install import Request, install
from agent.install.source import Staged
from agent.install.target import Target
from agent.layout import AGENT, SERVER, Layout
from agent.releases.header import read_identity
from agent.releases.unpack import unpack
from agent.supervise.units import agent_unit, server_unit
from agent.update.record import Release

CONFIG = Path("/etc/machine.json")
DEFAULTS = Path("/etc/machine-defaults.json")


def stage_files(files: list[Path], layout: Layout) -> list[Staged]:
    """Put the releases on the disk as an update does."""
    staged = []
    for file in files:
        header = read_identity(file)
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        release = Release(header.version, sha256, file.stat().st_size, f"file://{file}", header.platform)
        shutil.copyfile(file, download_path(layout, header.program, sha256))
        stage(layout, header.program, release, unpack)
        staged.append(Staged(header.program, release))
    return staged


def main(words: list[str]) -> None:
    """Install."""
    files = [Path(word) for word in words if "=" not in word]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    layout = Layout()
    install(
        Target(),
        Request(
            partial(stage_files, files),
            {AGENT: agent_unit(layout, CONFIG, DEFAULTS), SERVER: server_unit(layout, CONFIG)},
            CONFIG,
            DEFAULTS,
            credentials=Path(options["credentials"]) if "credentials" in options else None,
            release_root=Path(options["release_root"]).read_bytes() if "release_root" in options else None,
        ),
        print,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
