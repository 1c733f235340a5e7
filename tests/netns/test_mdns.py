"""Multicast DNS on real sockets, each scene in a separate network namespace: no packet leaves it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import in_namespace, namespace_refusal

SCENES = Path(__file__).with_name("mdns_scenes.py")
NAMES = re.findall(r"^(?:async )?def (test_\w+)", SCENES.read_text(), re.MULTILINE)
PLAIN = ("-W", "error", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, f"--rootdir={SCENES.parent}")
"""Scenes use pytest alone; plugins and tests/conftest.py take three times as long to load as pytest."""


@pytest.mark.parametrize("name", NAMES)
def test_scene(name: str) -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    command = [sys.executable, "-m", "pytest", "-q", *PLAIN, f"{SCENES}::{name}"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(in_namespace(command), capture_output=True, text=True, timeout=100, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
