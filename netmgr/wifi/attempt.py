"""Attempt to join a network: events of wpa_supplicant to what is reported of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from netmgr.model.events import Joined, JoinFailed, JoinFailure, Left

MAX_DETAIL: Final = 120
"""Characters of an event in `detail`."""

Phase = Literal["joining", "joined", "rejoining"]


class AttemptRule(NamedTuple):
    """Meaning of an event of wpa_supplicant, which begins with `prefix` and matches `pattern`."""

    prefix: str
    pattern: str
    failure: JoinFailure
    first: int
    """Number of such events that end the first attempt."""
    again: int | None
    """The same when a connection was lost and is sought again; None: it goes on without an end.

    An access point that loses power in the middle of the handshake looks like one with another password.
    """
    eap: bool = False
    """It counts only after EAP has started: the end of EAP with a network can be reported after its removal."""


RULES: Final = (
    AttemptRule("CTRL-EVENT-EAP-TLS-CERT-ERROR", "", JoinFailure.SERVER_CERTIFICATE, 1, 3, eap=True),
    AttemptRule("CTRL-EVENT-EAP-FAILURE", "", JoinFailure.CREDENTIALS, 1, 3, eap=True),
    AttemptRule("CTRL-EVENT-SSID-TEMP-DISABLED", r"reason=WRONG_KEY", JoinFailure.WRONG_PASSWORD, 1, 3),
    AttemptRule("CTRL-EVENT-SSID-TEMP-DISABLED", r"reason=AUTH_FAILED", JoinFailure.CREDENTIALS, 1, 3, eap=True),
    AttemptRule("CTRL-EVENT-SSID-TEMP-DISABLED", r"reason=CONN_FAILED", JoinFailure.REJECTED, 2, 6),
    # SAE (3): unspecified failure (1), challenge failure (15). The password is proved before the association.
    AttemptRule("CTRL-EVENT-AUTH-REJECT", r"auth_type=3 .*status_code=(1|15)\b", JoinFailure.WRONG_PASSWORD, 2, 6),
    AttemptRule("CTRL-EVENT-AUTH-REJECT", "", JoinFailure.REJECTED, 3, 6),
    AttemptRule("CTRL-EVENT-ASSOC-REJECT", "", JoinFailure.REJECTED, 3, 6),
    # A scan can miss an access point, and one that has just been switched on.
    AttemptRule("CTRL-EVENT-NETWORK-NOT-FOUND", "", JoinFailure.NOT_FOUND, 3, None),
)
"""The first rule that fits an event applies."""
_CONNECTED: Final = "CTRL-EVENT-CONNECTED"
_EAP: Final = "CTRL-EVENT-EAP-STARTED"
_DISCONNECTED: Final = "CTRL-EVENT-DISCONNECTED"
_WORDS: Final = re.compile(r"\b(reason|status_code|auth_type|auth_transaction|err|locally_generated)=('[^']*'|\S+)")
_QUOTED: Final = re.compile(r'ssid="(?:[^"\\]|\\.)*"')


class WifiAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """Network that is being joined or is joined."""

    interface: str
    label: str
    phase: Phase = "joining"
    seen: Mapping[int, int] = {}
    """How often each of RULES has applied in this phase."""
    eap: bool = False
    """EAP has started in this phase."""


Report = Joined | JoinFailed | Left


def step(attempt: WifiAttempt, event: str) -> tuple[WifiAttempt | None, Report | None]:
    """Return the attempt after an event, None if it has ended without success, and what is to be reported."""
    if event.startswith(_CONNECTED):
        joined = msgspec.structs.replace(attempt, phase="joined", seen={}, eap=False)
        report = None if attempt.phase == "joined" else Joined(interface=attempt.interface, label=attempt.label)
        return joined, report
    if attempt.phase == "joined":
        if not event.startswith(_DISCONNECTED):
            return attempt, None
        left = Left(interface=attempt.interface, label=attempt.label, detail=detail(event))
        return msgspec.structs.replace(attempt, phase="rejoining", seen={}), left
    return _failing(attempt, event)


def _failing(attempt: WifiAttempt, event: str) -> tuple[WifiAttempt | None, Report | None]:
    if event.startswith(_EAP):
        return msgspec.structs.replace(attempt, eap=True), None
    event = _QUOTED.sub("", event)  # an SSID can contain the words of the rules
    for number, rule in enumerate(RULES):
        if event.startswith(rule.prefix) and re.search(rule.pattern, event) and attempt.eap >= rule.eap:
            count = attempt.seen.get(number, 0) + 1
            limit = rule.first if attempt.phase == "joining" else rule.again
            if limit is not None and count >= limit:
                return None, failed(attempt, rule.failure, detail(event))
            return msgspec.structs.replace(attempt, seen={**attempt.seen, number: count}), None
    return attempt, None


def failed(attempt: WifiAttempt, failure: JoinFailure, text: str = "") -> JoinFailed:
    """Return the report of an attempt that has ended."""
    return JoinFailed(interface=attempt.interface, label=attempt.label, failure=failure, detail=text)


def detail(event: str) -> str:
    """Return the name of an event and its codes: no names of networks or people, and at most MAX_DETAIL characters."""
    name = event.split(" ", 1)[0].removeprefix("CTRL-EVENT-")
    words = (f"{key}={value}" for key, value in _WORDS.findall(_QUOTED.sub("", event)))
    text = " ".join((name, *words))
    return "".join(char if char.isprintable() else "?" for char in text)[:MAX_DETAIL]
