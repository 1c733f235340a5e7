"""Scenes for test_webrtc.py: the tests of tests/e2e/sdk, with every call over WebRTC, or through the cloud."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.e2e.sdk.machine import document
from tests.netns.internet import CLIENT
from tests.netns.webrtc.world import scene_within, world

FOLDER = Path(__file__).parents[2] / "e2e" / "sdk"
TESTS = ("test_components.py", "test_every_rpc.py", "test_robot.py")
OTHERWISE = (
    "test_robot.py::test_errors_have_the_right_status",  # expects a machine without a cloud
    "test_robot.py::test_killing_a_client_stops_the_resources_that_it_controlled",  # see fault_scenes
)


async def walk(tmp_path: Path, *switches: str) -> int:
    """Run the tests at one machine; return the number of WebRTC connections."""
    async with world(tmp_path, cabled=True, switches=switches, **document()) as made:
        words = ["env", f"MACHINE_SDK_ADDRESS={made.host}", f"MACHINE_SDK_KEY={' '.join(made.cloud.key)}"]
        tests = [str(FOLDER / name) for name in TESTS]
        tests += [f"--deselect=tests/e2e/sdk/{name}" for name in OTHERWISE]
        print(await made.output(CLIENT, *words, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests))
        return len(made.paths())


@scene_within(400)
async def test_every_component(tmp_path: Path) -> None:
    assert await walk(tmp_path) >= len(TESTS)


@scene_within(400)
async def test_every_component_through_the_cloud(tmp_path: Path) -> None:
    assert await walk(tmp_path, "-webrtc=false") == 0
