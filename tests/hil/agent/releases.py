"""Release files for guests: the programs of this source tree, started by the guest's Python, as several versions.

A release of `make release` contains an interpreter and is unpacked to 130 MiB; these differ from it only in size. Each
of their files names its version, so that a mixture of two releases can be recognized.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from agent.layout import AGENT, SERVER
from tests.hil.image.contents import SITE
from tools.release.pack import Packed, pack
from uplink.platforms import platform
from uplink.releases import Header, normal_platform

SOURCE: Final = "/srv/source"
"""Where these guests mount the project's source."""
FILES: Final = 24
"""Files of a release besides its program."""
SIZE: Final = 40_000  # bytes of each file; random, so that xz does not make them smaller
SUMS: Final = "SHA256SUMS"

_MODULES: Final = {AGENT: "agent.start", SERVER: "runtime.server.start"}
_PREPARE: Final = f"""\
here=$(unset CDPATH && cd -P -- "$(dirname "$0")" && pwd -P)
export PYTHONPATH="$here/lib:{SOURCE}:{SITE}" PYTHONDONTWRITEBYTECODE=1
"""


def real(program: str) -> str:
    """Return the script of a release that is the program of this source tree."""
    return f'exec /usr/bin/python3 -m {_MODULES[program]} "$@"\n'


def write(folder: Path, program: str, version: str, script: str | None = None, *, on: str | None = None) -> Packed:
    """Write the file of a release into `folder`. `script` is its program, by default that of this source tree."""
    tree = folder / f"{program}-{version}.tree"
    shutil.rmtree(tree, ignore_errors=True)
    metadata = tree / "lib" / f"machine_runtime-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: machine-runtime\nVersion: {version}\n")
    for number in range(FILES):
        file = tree / f"part-{number % 4}" / f"{number}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(f"{program} {version}\n".encode() + os.urandom(SIZE))
    run = folder / f"{program}-{version}.run"
    run.write_text(f"#!/bin/sh\n{_PREPARE}{real(program) if script is None else script}")
    run.chmod(0o755)
    paths = [(path, path.relative_to(tree)) for path in sorted(tree.rglob("*")) if path.is_file()]
    sums = [f"{_sha256(path)}  {name}\n" for path, name in [*paths, (run, Path("run"))]]
    (tree / SUMS).write_text("".join(sums))
    packed = pack(Header(program, version, on or normal_platform(platform())), tree, run, folder)
    shutil.rmtree(tree)
    return packed


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
