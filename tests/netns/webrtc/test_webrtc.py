"""Official SDKs and a machine without a reachable port, over WebRTC on an Internet of network namespaces.

Scenes that take long, or that repeat what others show, run only with MACHINE_WEBRTC_ALL=yes.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.browser.chromium import PROGRAM
from tests.e2e.harness import in_namespace, namespace_refusal
from tests.e2e.typescript import test_typescript
from tests.e2e.typescript.test_cloud import SDK
from tests.netns.internet import turnserver
from tests.netns.test_mdns import PLAIN

FOLDER = Path(__file__).parent
NODE_WEBRTC = test_typescript.HERE / "node_modules" / "@roamhq" / "wrtc"
USUAL = (
    "connect_scenes.py::test_direct",
    "connect_scenes.py::test_relayed",
    "connect_scenes.py::test_without_nat[6]",
    "browser_scenes.py::test_chromium",
    "node_scenes.py::test_node",
    "fault_scenes.py::test_a_cloud_that_is_killed_and_started_again",
    "fault_scenes.py::test_a_client_that_is_killed",
    "fault_scenes.py::test_hostile_offers_and_candidates",
)
LONG = (
    "connect_scenes.py::test_without_nat[4]",
    "connect_scenes.py::test_without_a_way",
    "connect_scenes.py::test_a_bad_network",
    "connect_scenes.py::test_a_change_of_networks",
    "walk_scenes.py::test_every_component",
    "walk_scenes.py::test_every_component_through_the_cloud",
    "fault_scenes.py::test_a_cloud_that_is_killed_during_signalling",
    "fault_scenes.py::test_a_flood_of_offers",
    "fault_scenes.py::test_a_killed_client_is_disconnected",
    "fault_scenes.py::test_a_machine_that_is_killed_and_started_again",
    "fault_scenes.py::test_many_connections_leave_nothing",
)
WITHOUT_COTURN = ("fault", "walk", "connect_scenes.py::test_without_nat")
ALL = pytest.mark.skipif(not os.environ.get("MACHINE_WEBRTC_ALL"), reason="takes long: set MACHINE_WEBRTC_ALL=yes")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*USUAL, *(pytest.param(name, marks=ALL) for name in LONG)])
def test_scene(name: str) -> None:
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    if not os.access("/dev/net/tun", os.W_OK):
        pytest.skip("/dev/net/tun cannot be opened")
    if importlib.util.find_spec("wrtc") is None:
        pytest.skip("wrtc is not installed")
    if turnserver is None and not name.startswith(WITHOUT_COTURN):
        pytest.skip("turnserver is not installed: apt-get install coturn")
    if name.startswith("browser") and not (os.path.exists(PROGRAM) and SDK.exists()):
        pytest.skip("Chromium and the TypeScript SDK are not both installed: run tools/setup-node tests/e2e/typescript")
    if name.startswith("node") and not (shutil.which("node") and NODE_WEBRTC.exists()):
        pytest.skip("Node.js with @roamhq/wrtc is not installed: run tools/setup-node tests/e2e/typescript")
    command = [sys.executable, "-m", "pytest", "-q", "-rP", *PLAIN, f"{FOLDER}/{name}"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "" if name.startswith("walk") else "1"}
    words = in_namespace(["unshare", "--mount", *command])
    done = subprocess.run(words, capture_output=True, text=True, timeout=1260, env=environ)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
