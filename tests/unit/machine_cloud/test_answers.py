"""Invalid answers of proxies between a machine and its cloud: the machine reports the cause, and calls again."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from schema.document.cloud import Cloud
from tests.loopback import listening
from uplink.dial import CloudUnavailable, address_of, connected

NEITHER = "is neither HTTP/1.1 nor WebSocket"
AWAY = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n"
ANSWERS = {
    "no word": ("", "closed the connection"),
    "half a word": ("HTTP/1.1 10", "closed the connection"),
    "a gateway": (f"{AWAY}Content-Length: 11\r\n\r\n<h1>502</h1", "HTTP status 502: <h1>502</h1"),
    "a gateway that hangs up": (f"{AWAY}Connection: close\r\n\r\n<h1>502</h1>", "closed the connection"),
    "another place": ("HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "HTTP status 301"),
    "a page": ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "HTTP status 200: hi"),
    "no status": ("HTTP/1.1 009 x\r\n\r\n", NEITHER),
    "HTTP/2": ("\0\0\x12\4\0\0\0\0\0", NEITHER),
    "text": ("SSH-2.0-OpenSSH_9.2\r\n\r\n", NEITHER),
    "no WebSocket": ("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", NEITHER),
    "a wrong key": (
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
        NEITHER,
    ),
    "no end": ("HTTP/1.1 200 OK\r\n" + "a: b\r\n" * 100_000, NEITHER),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_every_answer_is_reported(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said, messages = ANSWERS[answer]

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(said.encode("latin-1"))

    async def no_headers(_: Any) -> list[tuple[str, str]]:
        return []

    monkeypatch.setattr("uplink.dial.token_headers", no_headers)
    async with listening(serve) as number:
        address = address_of(Cloud(app_address=f"http://127.0.0.1:{number}", id="part", secret="hush"))
        with pytest.raises(CloudUnavailable) as caught:
            async with connected(address):
                pass
    assert messages in str(caught.value)
