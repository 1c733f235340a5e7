"""The engine of peer connections keeps the contract of its port, also with an independent peer. Each in a namespace."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import in_namespace, namespace_refusal
from tests.netns.test_mdns import PLAIN
from tests.scope import some_of

FOLDER = Path(__file__).parent
PAIRS = some_of(2, ("wrtc wrtc", "wrtc aiortc", "aiortc wrtc"), 30)
SENDER = ("wrtc aiortc",)  # the engine of the product sends
LIBRARIES = {"wrtc": ("wrtc",), "aiortc": ("aiortc", "trio_asyncio")}


def run(scenes: str, names: str) -> None:
    """Run the scenes of a file in a network namespace, with the engines that are named."""
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespaces: {refusal}")
    for library in {library for name in names.split() for library in LIBRARIES[name]}:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    command = [sys.executable, "-m", "pytest", "-q", *PLAIN, str(FOLDER / scenes)]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PEER_ENGINES": names}
    done = subprocess.run(in_namespace(command), capture_output=True, text=True, timeout=280, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_contract() -> None:
    run("conformance_scenes.py", "wrtc wrtc")


@pytest.mark.slow
@pytest.mark.parametrize("names", PAIRS)
def test_calls(names: str) -> None:
    run("call_scenes.py", names)


@pytest.mark.slow
@pytest.mark.parametrize("names", PAIRS)
def test_video(names: str) -> None:
    run("video_scenes.py", names)


@pytest.mark.slow
@pytest.mark.parametrize("names", SENDER)
def test_sound(names: str) -> None:
    run("sound_scenes.py", names)


@pytest.mark.slow
@pytest.mark.parametrize("names", SENDER)
def test_streams(names: str) -> None:
    run("stream_scenes.py", names)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wrtc"])
def test_hostile_input(name: str) -> None:
    run("hostile_scenes.py", f"{name} {name}")


@pytest.mark.slow
@pytest.mark.parametrize("names", ["wrtc wrtc"])
def test_growth(names: str) -> None:
    run("growth_scenes.py", names)
