"""The proof that the cloud answers, and its key in the answer to a report."""

from __future__ import annotations

import json

from cloud.server.memory import MemoryCloud
from rpc.access.credential_types import PART_SECRET
from rpc.access.proof import verified
from rpc.api.cloud_v1 import AGENTS
from tests.unit.cloud.pages import HOST, browser

NONCE = "0123456789abcdef" * 2


async def test_the_key_of_a_report_verifies_the_public_answer(cloud: MemoryCloud, part: str) -> None:
    report = json.dumps({"format": 1, "time": 1}).encode()
    key = await cloud.client(part, PART_SECRET).call(AGENTS, "", "report_agent", part_id=part, report_json=report)
    answer = await browser(cloud).send("GET", f"/connectivity/{part}?nonce={NONCE}", {"host": HOST})
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    now = verified(key, NONCE, answer.text.encode())
    assert now == int(cloud.cloud.clock().timestamp())


async def test_the_answer_for_another_part_is_not_valid(cloud: MemoryCloud, part: str) -> None:
    key = cloud.cloud.links.proof_key(part)
    answer = await browser(cloud).send("GET", f"/connectivity/someone-else?nonce={NONCE}", {"host": HOST})
    assert answer.status == 200  # the same as for a part: it says nothing about which parts exist
    assert verified(key, NONCE, answer.text.encode()) is None


async def test_other_questions_are_refused(cloud: MemoryCloud, part: str) -> None:
    for question in (
        f"/connectivity/{part}",
        f"/connectivity/{part}?nonce=abc",
        f"/connectivity/{'a' * 65}?nonce={NONCE}",
    ):
        answer = await browser(cloud).send("GET", question, {"host": HOST})
        assert answer.status == 400
        assert "nonce must be" in answer.text
