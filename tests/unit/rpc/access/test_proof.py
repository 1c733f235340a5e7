"""The proof that a cloud answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.access.proof import answer, is_question, proof_key, verified

KEY = proof_key("secret of the cloud", "part-1")
NONCE = "0123456789abcdef" * 2


def encoded(key: str = KEY, nonce: str = NONCE, now: int = 1_800_000_000, **changes: object) -> bytes:
    return json.dumps({**answer(key, nonce, now), **changes}).encode()


def test_the_answer_of_the_cloud_is_accepted_and_has_the_time() -> None:
    assert verified(KEY, NONCE, encoded()) == 1_800_000_000


@pytest.mark.parametrize(
    "data",
    [
        encoded(key=proof_key("secret of the cloud", "part-2")),
        encoded(key=proof_key("another secret", "part-1")),
        encoded(nonce="f" * 32),
        encoded(time=1_800_000_001),
        encoded(time=1.8e9),
        encoded(time=True),
        encoded(time=-1),
        encoded(signature=""),
        encoded(signature=None),
        encoded(signature="\ud800"),
        b"<html>Log in to the hotel's network</html>",
        b"[]",
        b"",
        b"[" * 10_000,
    ],
)
def test_every_other_answer_is_rejected(data: bytes) -> None:
    assert verified(KEY, NONCE, data) is None


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    assert verified(KEY, NONCE, data) is None


@pytest.mark.parametrize(
    ("part", "nonce", "valid"),
    [
        ("part-1", NONCE, True),
        ("", NONCE, False),
        ("a" * 65, NONCE, False),
        ("part/1", NONCE, False),
        ("part-1", NONCE[:31], False),
        ("part-1", NONCE.upper(), False),
        ("part-1", "a" * 65, False),
    ],
)
def test_the_cloud_answers_only_short_questions(part: str, nonce: str, valid: bool) -> None:
    assert is_question(part, nonce) is valid
