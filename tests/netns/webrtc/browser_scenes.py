"""Scenes for test_webrtc.py: connections of the TypeScript SDK in Chromium."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.netns.internet import CLIENT, MACHINE, STUN, TURN
from tests.netns.peers.pairs import scene
from tests.netns.webrtc.world import World, world


async def page(made: World) -> dict[str, object]:
    """Run the page on the client's computer and return its result."""
    folder = made.folder / f"page{len(made.paths())}"
    folder.mkdir()
    program = [sys.executable, "-m", f"{__package__}.chromium_program"]
    words = [str(folder), made.cloud_url, made.host.partition(":")[0], *made.cloud.key]
    result = json.loads(await made.output(CLIENT, *program, *words))
    print(result, made.paths())
    assert result["readings"] == {"a": 1, "b": 2, "c": 3}
    assert result["powered"] == [True, 0.25]
    assert "no rdk:component:motor named 'missing'" in str(result["error"])  # over WebRTC this SDK loses the code
    assert result["shown"] == [640, 480]
    assert set(result["names"]) >= {"a", "echo", "wheel"}
    return dict(result)


@scene
async def test_chromium(tmp_path: Path) -> None:
    async with world(tmp_path, STUN, TURN, relay=True) as made:
        await page(made)
        made.net.nat(CLIENT, symmetric=True)
        made.net.nat(MACHINE, symmetric=True)
        await page(made)
        assert len(made.paths()) == 2
