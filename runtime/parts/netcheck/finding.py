"""Findings of checks, and their evaluation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["ok", "failed", "note", "skipped"]

REDUNDANT: Final = frozenset({"dns", "stun", "stun-tcp"})
"""Checks for which one success is enough, because some public servers are always unreachable."""

REMEDIES: Final = {
    "dns": "check cable, Wi-Fi and route (ip route); a firewall must allow outgoing TCP to port 53",
    "resolve": "the system's resolver cannot resolve the name: check /etc/resolv.conf and resolvectl status",
    "stun": "a firewall must allow outgoing UDP to ports 3478 and 19302; otherwise WebRTC needs a relay",
    "stun-tcp": "a firewall must allow outgoing TCP to ports 3478 and 443, which relays for WebRTC use",
    "ping": "packets are lost: check the Wi-Fi signal, the cable and other traffic on the line",
}

HARD_LOSS: Final = 0.1  # share of lost packets that counts as a failure, because people notice it


@dataclass(frozen=True, slots=True)
class NetcheckFinding:
    """The result of one check of one target."""

    check: str  # dns, resolve, stun, stun-tcp, ping
    target: str
    outcome: Outcome
    detail: str
    milliseconds: float | None = None

    @property
    def remedy(self) -> str:
        """What to do; empty if the check has not failed."""
        return REMEDIES.get(self.check, "") if self.outcome == "failed" else ""


def failures(findings: Sequence[NetcheckFinding]) -> list[NetcheckFinding]:
    """Return the relevant failures: all, except those of redundant checks with at least one success."""
    redundant = REDUNDANT & {finding.check for finding in findings if finding.outcome == "ok"}
    return [finding for finding in findings if finding.outcome == "failed" and finding.check not in redundant]


def mapping(addresses: Iterable[tuple[str, int]]) -> str:
    """Describe symmetric NAT if servers saw several `addresses` of one socket; else return an empty string."""
    seen = sorted(set(addresses))
    if len(seen) < 2:
        return ""
    listed = ", ".join(f"{host}:{port}" for host, port in seen)
    return (
        f"the router uses a different address for each destination ({listed}): "
        "direct connections from outside will fail, and WebRTC needs a relay"
    )


def loss(target: str, sent: int, times: Sequence[float], *, gateway: bool, beyond: bool) -> NetcheckFinding:
    """Return the finding for echo requests.

    `times` are round-trip times in seconds, `gateway` says that the target is the gateway, and `beyond` that a target
    beyond the gateway answers.
    """
    lost = sent - len(times)
    share = lost / sent
    detail = f"{lost} of {sent} lost"
    if not times:
        if gateway and beyond:
            return NetcheckFinding("ping", target, "note", f"{detail}: the router does not answer, which is harmless")
        return NetcheckFinding("ping", target, "failed", detail)
    middle = sorted(times)[len(times) // 2]
    outcome: Outcome = "failed" if share > HARD_LOSS else "ok"
    worst = f", slowest {max(times) * 1000:.1f} ms" if len(times) > 1 else ""
    return NetcheckFinding("ping", target, outcome, f"{detail}{worst}", middle * 1000)


def rows(findings: Iterable[NetcheckFinding]) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of a table: check, target, outcome, time, detail."""
    return [
        (
            finding.check,
            finding.target,
            finding.outcome,
            "" if finding.milliseconds is None else f"{finding.milliseconds:.1f} ms",
            finding.detail,
        )
        for finding in findings
    ]
