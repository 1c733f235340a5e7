"""Scenes for test_webrtc.py: connections of the TypeScript SDK in Node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.typescript import test_typescript
from tests.netns.internet import CLIENT, MACHINE, STUN, TURN
from tests.netns.peers.pairs import scene
from tests.netns.webrtc.world import World, world

PROGRAM = test_typescript.HERE / "webrtc.mjs"


async def program(made: World) -> dict[str, Any]:
    """Run the program on the client's computer and return its result."""
    words = ["node", str(PROGRAM), made.cloud_url, made.host.partition(":")[0], *made.cloud.key]
    result: dict[str, Any] = json.loads((await made.output(CLIENT, *words)).splitlines()[-1])
    print(result, made.paths())
    assert result["readings"] == {"a": 1, "b": 2, "c": 3}
    assert result["powered"] == [True, 0.25]
    assert "no rdk:component:motor named 'missing'" in result["error"]  # over WebRTC this SDK loses the code
    assert result["state"] == "connected"
    assert result["shown"] == [640, 480]
    assert 320 < result["pitch"] < 340
    assert set(result["names"]) >= {"a", "echo", "wheel"}
    return result


@scene
async def test_node(tmp_path: Path) -> None:
    async with world(tmp_path, STUN, TURN, relay=True) as made:
        await program(made)
        made.net.nat(CLIENT, symmetric=True)
        made.net.nat(MACHINE, symmetric=True)
        await program(made)
        assert len(made.paths()) == 2
