"""Calls of machine.cloud.v1 over a real port: the limits of their messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloud.services.target import MESSAGES
from rpc.api.cloud_v1 import RELEASES, TRIGGERS
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import cloud

ROOM = 1000  # bytes for the other fields


def with_size(service: str, method: str, size: int) -> dict[str, Any]:
    """Return arguments of a call whose message has about this size."""
    if service == RELEASES:
        return {"organization_id": "none", "root_json": bytes(size // 2), "targets_json": bytes(size - size // 2)}
    assert service == TRIGGERS, method
    return {"part_id": "none", "trigger": "none", "reading": {"a": "x" * size}}


async def test_messages_above_their_limits_are_refused(tmp_path: Path) -> None:
    names = {
        "ExplainTrigger": "explain_trigger",
        "SendTest": "send_test",
        "UpdateReleaseMetadata": "update_release_metadata",
    }
    async with cloud(tmp_path) as process, process.client() as client:
        for path, limit in MESSAGES.items():
            service, _, call = path.strip("/").partition("/")
            for size, kind in ((limit - ROOM, ErrorKind.NOT_FOUND), (limit + 1, ErrorKind.EXHAUSTED)):
                with pytest.raises(MachineError) as caught:
                    await client.call(service, "", names[call], **with_size(service, call, size))
                assert caught.value.kind is kind, (path, size)
