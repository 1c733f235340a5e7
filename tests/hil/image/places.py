"""The paths of the rig's files, and whether those are current."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
BUILD: Final = Path(os.environ.get("MACHINE_HIL_DIR") or ROOT / "build" / "hil").resolve()
IMAGE: Final = BUILD / "image"
WORK: Final = BUILD / "work"

INPUTS: Final = (
    *("tests/hil/image/*.py", "tests/hil/guest/agent.py", "tests/hil/guest/interpreter.py"),
    *("tests/hil/rig/qemu.py", "tests/hil/uml/*", "tests/hil/uml/patches/*.patch", "requirements/test.lock"),
)
"""The inputs of the image, apart from Debian's packages. The project's own source is not in it."""


def inputs_digest() -> str:
    """Return a digest of all files that determine the image."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in INPUTS for path in ROOT.glob(pattern) if path.is_file()):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def qemu_version() -> str:
    """Return the version of QEMU: a saved state may not be readable by another version."""
    try:
        said = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    return said.partition("\n")[0]


def built_from() -> dict[str, str]:
    """Return the inputs of the existing image; empty if there is none."""
    try:
        inputs: dict[str, str] = json.loads((IMAGE / "inputs.json").read_text())
    except (OSError, ValueError):
        return {}
    return inputs


def why_not_ready() -> str:
    """Return why the image cannot be used for tests; empty if it can."""
    built = built_from()
    if not built:
        return f"there is no guest image in {BUILD}: run `make hil`"
    if built.get("files") != inputs_digest():
        return f"the guest image in {BUILD} is older than what it is built from: run `make hil`"
    if built.get("qemu") != qemu_version():
        return f"the guest in {BUILD} was saved by another QEMU: run `make hil`"
    return ""
