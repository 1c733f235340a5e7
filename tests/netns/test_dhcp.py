"""DHCP with the client and the server of busybox, in network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import in_namespace, namespace_refusal
from tests.netns.test_mdns import PLAIN

SCENES = Path(__file__).with_name("dhcp_scenes.py")


def has_dhcp() -> bool:
    """Return whether busybox has a DHCP client and server; Debian's package `busybox` has none."""
    if shutil.which("busybox") is None:
        return False
    applets = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    return {"udhcpc", "udhcpd"} <= set(applets)


@pytest.mark.skipif(not has_dhcp(), reason="busybox has no DHCP: apt-get install busybox-static")
def test_scenes() -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    command = [sys.executable, "-m", "pytest", "-q", *PLAIN, str(SCENES)]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(in_namespace(command), capture_output=True, text=True, timeout=200, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
