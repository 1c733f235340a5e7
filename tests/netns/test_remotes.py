"""Machines that use each other through the cloud and directly, on networks that change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import in_namespace, namespace_refusal
from tests.netns.test_mdns import PLAIN

SCENES = Path(__file__).with_name("remote_scenes.py")


@pytest.mark.slow
def test_one_network_and_two() -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    command = [sys.executable, "-m", "pytest", "-q", "-rP", *PLAIN, f"{SCENES}::test_one_network_and_two"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = in_namespace(["unshare", "--mount", *command])
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=environ)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
