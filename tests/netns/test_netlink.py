"""The kernel's rtnetlink: all scenes in one network namespace, which ends with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import in_namespace, namespace_refusal
from tests.netns.test_mdns import PLAIN

SCENES = Path(__file__).with_name("netlink_scenes.py")


def test_scenes() -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    command = [sys.executable, "-m", "pytest", "-q", *PLAIN, str(SCENES)]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(in_namespace(command), capture_output=True, text=True, timeout=200, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
