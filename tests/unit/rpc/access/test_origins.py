"""Web origins that may call a port, as a table of the headers that browsers send."""

from __future__ import annotations

import pytest

from rpc.access.origins import Origins

OPEN = Origins(
    keys=False, names=("rover.example",), configured=("https://app.example", "http://localhost:*"), option="o"
)
LOCAL = Origins(keys=False, loopback=True, option="o")


@pytest.mark.parametrize(
    ("rule", "authority", "origin", "may"),
    [
        (LOCAL, "localhost:8080", "http://localhost:8080", True),
        (LOCAL, "LOCALHOST:8080", "http://localhost:8080", True),
        (LOCAL, "localhost", "http://localhost", True),
        (LOCAL, "localhost:80", "http://localhost", True),
        (LOCAL, "[::1]:8080", "http://[::1]:8080", True),
        (LOCAL, "localhost:8080", None, True),
        (LOCAL, "localhost:8080", "https://localhost:8080", False),
        (LOCAL, "localhost:8080", "http://localhost:8081", False),
        (LOCAL, "localhost:8080", "http://127.0.0.1:8080", False),
        (LOCAL, "localhost:8080", "null", False),
        (LOCAL, "localhost:8080", "", False),
        (LOCAL, "evil.example", "http://evil.example", False),
        (LOCAL, "evil.example", None, False),
        (LOCAL, "192.168.1.7:8080", None, False),
        (LOCAL, "", None, False),
        (OPEN, "192.168.1.7:8080", "http://192.168.1.7:8080", True),
        (OPEN, "[fe80::1]:8080", "http://[fe80::1]:8080", True),
        (OPEN, "rover:8080", "http://rover:8080", True),
        (OPEN, "rover.local:8080", "http://rover.local:8080", True),
        (OPEN, "rover.example.", "http://rover.example.", True),
        (OPEN, "rover.local.evil.example:8080", "http://rover.local.evil.example:8080", False),
        (OPEN, "rover.example.evil.example", None, False),
        (OPEN, "192.168.1.7.evil.example:8080", None, False),
        (OPEN, "rover:8080", "https://app.example", True),
        (OPEN, "rover:8080", "HTTPS://APP.EXAMPLE", True),
        (OPEN, "rover:8080", "https://app.example:444", False),
        (OPEN, "rover:8080", "https://app.example.evil.example", False),
        (OPEN, "rover:8080", "http://localhost", True),
        (OPEN, "rover:8080", "http://localhost:5173", True),
        (OPEN, "rover:8080", "https://localhost:5173", False),
        (OPEN, "rover:8080", "http://localhost:5173.evil.example", False),
        (OPEN, "app.example:8080", None, True),
        (Origins(), "evil.example", "http://other.example", True),
        (Origins(configured=("https://app.example",)), "evil.example", "http://other.example", False),
        (Origins(configured=("https://app.example",)), "rover.example", "http://rover.example", True),
        (Origins(configured=("https://app.example",)), "rover.example", "https://app.example", True),
    ],
)
def test_pages(rule: Origins, authority: str, origin: str | None, may: bool) -> None:
    reason = rule.wrong_page("http", authority, origin)
    assert (reason == "") == may, reason


def test_a_refusal_names_the_option_and_the_origin() -> None:
    assert LOCAL.wrong_page("http", "localhost:1", "https://app.example") == (
        'web pages of https://app.example may not call this server: to allow this, add "https://app.example" to o, '
        "or configure keys"
    )
    assert len(LOCAL.wrong_page("http", "localhost:1", "x" * 10_000)) < 500
    assert len(LOCAL.wrong_page("http", "x" * 10_000, None)) < 500
