"""What official SDKs read when they try WebRTC first: the Python SDK logs any answer at ERROR."""

from __future__ import annotations

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from runtime.server.memory import open_machine


async def test_a_webrtc_attempt_is_logged_as_harmless() -> None:
    async with open_machine({}) as memory:
        for method in ("Call", "OptionalWebRTCConfig", "CallUpdate"):
            handler = memory.serving.router.get(f"/proto.rpc.webrtc.v1.SignalingService/{method}")
            assert handler is not None
            with pytest.raises(GRPCError) as caught:
                await handler.func(None)
            assert caught.value.status is Status.UNIMPLEMENTED  # other statuses end the TypeScript SDK's attempt
            assert "not an error" in str(caught.value.message)
            assert "disable_webrtc=True" in str(caught.value.message)
