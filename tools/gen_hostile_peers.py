"""Write docs/reference/hostile-peers.md from the tables of attacks in tests/e2e/hostile and tests/helpers."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "hostile-peers.md"


def page() -> str:
    """Return the text of the page."""
    from tests.e2e.hostile.http1_rows import ROWS
    from tests.helpers.hostile import HTTP2

    lines = [
        "# Hostile peers",
        "",
        "This page lists attacks on the port and the server's answers. It is written from the tables in",
        "`tests/e2e/hostile` and `tests/helpers/hostile.py`. Every row runs against a live server while another client",
        "keeps calling and is answered. Memory stays bounded and no connection stays open. The limits are fields of",
        "`rpc.limits.Limits` and `rpc.http.limits.HttpLimits`. The last column has the keys of `Statistics.refusals`.",
    ]
    for title, table, rule in (("HTTP/2", HTTP2, "RFC 9113"), ("HTTP/1.1, TLS and other protocols", ROWS, "")):
        lines += [
            "",
            f"## {title}",
            "",
            "| what the peer does | what it gets | bound | counted as |",
            "|---|---|---|---|",
        ]
        for row in table:
            bound = f"`{row.bound}`" if row.bound else rule if row.reason else ""
            lines.append(f"| {row.name} | {row.answer} | {bound} | {row.reason} |")
    lines += [
        "",
        "## Connections without a key",
        "",
        "If keys are configured, a connection must present one within `authentication_timeout`; otherwise it ends",
        "with GOAWAY NO_ERROR and is counted as `authentication timeout`. Until then, such connections may use at most",
        "half of all connections of the port, and a quarter from each address. If a new one exceeds this, the one that",
        "has waited longest is closed without an answer.",
        "`tests/unit/rpc/access/test_admission.py` tests it.",
    ]
    return "\n".join(lines) + "\n"
