"""Scenes for test_conformance.py: hostile descriptions and candidates, for the first engine of `pairs.NAMES`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import psutil
import pytest
import trio

from rpc.peers.intake import MAX_CANDIDATES, MAX_LINE, MAX_LINES, MAX_SDP
from rpc.peers.port import Description, Engine, IceCandidate
from schema.errors import ErrorKind, MachineError
from tests.netns.peers.pairs import NAMES, engines, interface, join, new_end, scene

__all__ = ["interface"]
GROWTH = 24 << 20  # bytes that the process may grow while all rows are applied twice
LONGEST = 10.0  # seconds that a row may take

HOST = "candidate:1 1 udp 2113937151 10.77.0.1 {} typ host"


def without(pattern: str) -> Callable[[str], str]:
    return lambda sdp: re.sub(f"(?m)^{pattern}.*\r\n", "", sdp)


def replaced(pattern: str, text: str) -> Callable[[str], str]:
    return lambda sdp: re.sub(f"(?m)^{pattern}.*\r\n", lambda _: f"{text}\r\n" if text else "", sdp)


def added(*lines: str) -> Callable[[str], str]:
    return lambda sdp: sdp + "".join(f"{line}\r\n" for line in lines)


def media(sdp: str) -> str:
    return sdp[sdp.index("m=") :]


DESCRIPTIONS: dict[str, Callable[[str], str]] = {
    "empty": lambda _: "",
    "one line end": lambda _: "\r\n",
    "one letter": lambda _: "v",
    "only the version": lambda _: "v=0\r\n",
    "half": lambda sdp: sdp[: len(sdp) // 2],
    "without its last character": lambda sdp: sdp[:-3],
    "without media": lambda sdp: sdp[: sdp.index("m=")],
    "media only": media,
    "too large": added(*["a=" + "x" * 2_000] * 33),
    "as many lines as are accepted": lambda sdp: sdp + "a=x\r\n" * (MAX_LINES - sdp.count("\n")),
    "the largest": lambda sdp: sdp + f"a={'x' * 2_000}\r\n" * ((MAX_SDP - len(sdp)) // 2_004),
    "one long line": added("a=" + "x" * 60_000),
    "one long ice-ufrag": replaced("a=ice-ufrag", "a=ice-ufrag:" + "x" * 60_000),
    "NUL": added("a=\0"),
    "NUL in the first line": lambda sdp: "v=\x000" + sdp,
    "control characters": added("a=" + "".join(map(chr, range(1, 10)))),
    "lone surrogate": added("a=\udcff"),
    "not ASCII": added("a=ice-ufrag:\U0001f916é"),
    "line separators of Unicode": lambda sdp: sdp.replace("\r\n", "\u2028"),
    "without line ends": lambda sdp: sdp.replace("\r\n", ""),
    "JSON": lambda _: '{"type": "offer", "sdp": "v=0"}',
    "HTML": lambda _: "<html>" * 100,
    "format string": added("a=%s%n%x" * 100),
    "the media again": lambda sdp: sdp + media(sdp),
    "the media 15 times": lambda sdp: sdp + media(sdp) * 14,
    "15 media with names": lambda sdp: sdp + "".join(media(sdp).replace("a=mid:0", f"a=mid:{n}") for n in range(1, 15)),
    "the media 1,000 times": lambda sdp: sdp + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n" * 1_000,
    "without ice-ufrag": without("a=ice-ufrag"),
    "without ice-pwd": without("a=ice-pwd"),
    "without fingerprint": without("a=fingerprint"),
    "without setup": without("a=setup"),
    "without mid": without("a=mid"),
    "without group": without("a=group"),
    "without sctp-port": without("a=sctp-port"),
    "short ice-pwd": replaced("a=ice-pwd", "a=ice-pwd:x"),
    "empty ice-ufrag": replaced("a=ice-ufrag", "a=ice-ufrag:"),
    "fingerprint of another kind": replaced("a=fingerprint", "a=fingerprint:md5 00"),
    "fingerprint that is not hexadecimal": replaced("a=fingerprint", "a=fingerprint:sha-256 " + "ZZ:" * 31 + "ZZ"),
    "negative media port": lambda sdp: sdp.replace("m=application 9 ", "m=application -9 "),
    "large media port": lambda sdp: sdp.replace("m=application 9 ", "m=application 99999999999999999999 "),
    "rejected media": lambda sdp: sdp.replace("m=application 9 ", "m=application 0 "),
    "unknown media": lambda sdp: sdp.replace("m=application", "m=teapot"),
    "unknown protocol": lambda sdp: sdp.replace("UDP/DTLS/SCTP", "CARRIER/PIGEON"),
    "negative sctp-port": replaced("a=sctp-port", "a=sctp-port:-1"),
    "large sctp-port": replaced("a=sctp-port", "a=sctp-port:99999999999999999999"),
    "negative max-message-size": replaced("a=max-message-size", "a=max-message-size:-1"),
    "large max-message-size": replaced("a=max-message-size", "a=max-message-size:" + "9" * 400),
    "unknown setup": replaced("a=setup", "a=setup:holdconn"),
    "setup of an offer that answers": replaced("a=setup", "a=setup:active"),
    "group of an unknown mid": replaced("a=group", "a=group:BUNDLE 0 1 2 x"),
    "group as long as is accepted": replaced("a=group", ("a=group:BUNDLE " + "0 1 " * MAX_LINE)[:MAX_LINE]),
    "long group": replaced("a=group", "a=group:BUNDLE " + " ".join(map(str, range(9_000)))),
    "thousands of candidates": added(*(f"a={HOST.format(port)}" for port in range(1, 1_100))),
    "invalid candidate": added("a=candidate:"),
    "candidate with a negative port": added(f"a={HOST.format(-1)}"),
    "candidate with a large port": added(f"a={HOST.format(65_536)}"),
    "candidate with a name": added("a=candidate:1 1 udp 2113937151 tracker.example.com 9 typ host"),
    "long candidate": added("a=candidate:" + "1" * 60_000),
    "end of candidates first": added("a=end-of-candidates", f"a={HOST.format(9)}"),
    "ICE lite": added("a=ice-lite"),
    "audio": added("m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=rtpmap:111 opus/48000/2", "a=mid:1", "a=sendrecv"),
    "video without codecs": added("m=video 9 UDP/TLS/RTP/SAVPF", "a=mid:1"),
    "video with 256 payload types": added(f"m=video 9 UDP/TLS/RTP/SAVPF {' '.join(map(str, range(256)))}", "a=mid:1"),
    "simulcast": added("m=video 9 UDP/TLS/RTP/SAVPF 96", "a=rtpmap:96 VP8/90000", "a=simulcast:send 1;2;3;~4,~5"),
}

CANDIDATES = {
    "empty with a name": IceCandidate("", "x" * 256),
    "only the keyword": IceCandidate("candidate:", "0", 0),
    "too long": IceCandidate("candidate:" + "1 " * 5_000, "0", 0),
    "NUL": IceCandidate(HOST.format("9\0"), "0", 0),
    "two lines": IceCandidate(HOST.format(9) + "\r\na=ice-pwd:x", "0", 0),
    "surrogate": IceCandidate(HOST.format("9\udcff"), "0", 0),
    "not ASCII": IceCandidate(HOST.format("٩"), "0", 0),
    "negative port": IceCandidate(HOST.format(-1), "0", 0),
    "large port": IceCandidate(HOST.format(65_536), "0", 0),
    "port zero": IceCandidate(HOST.format(0), "0", 0),
    "large priority": IceCandidate("candidate:1 1 udp 9999999999 10.77.0.1 9 typ host", "0", 0),
    "large component": IceCandidate("candidate:1 999 udp 1 10.77.0.1 9 typ host", "0", 0),
    "unknown transport": IceCandidate("candidate:1 1 sctp 1 10.77.0.1 9 typ host", "0", 0),
    "unknown type": IceCandidate("candidate:1 1 udp 1 10.77.0.1 9 typ teapot", "0", 0),
    "no type": IceCandidate("candidate:1 1 udp 1 10.77.0.1 9", "0", 0),
    "name": IceCandidate("candidate:1 1 udp 1 tracker.example.com 9 typ host", "0", 0),
    "local name": IceCandidate("candidate:1 1 udp 1 0a7e9b3c.local 9 typ host", "0", 0),
    "address of no computer": IceCandidate("candidate:1 1 udp 1 999.1.1.1 9 typ host", "0", 0),
    "any address": IceCandidate("candidate:1 1 udp 1 0.0.0.0 9 typ host", "0", 0),
    "broadcast": IceCandidate("candidate:1 1 udp 1 255.255.255.255 9 typ host", "0", 0),
    "multicast": IceCandidate("candidate:1 1 udp 1 224.0.0.251 5353 typ host", "0", 0),
    "IPv6 with a zone": IceCandidate("candidate:1 1 udp 1 fe80::1%lan0 9 typ host", "0", 0),
    "incomplete relay": IceCandidate("candidate:1 1 udp 1 10.77.0.1 9 typ relay raddr", "0", 0),
    "related port that is not a number": IceCandidate(
        "candidate:1 1 udp 1 10.77.0.1 9 typ relay raddr x rport x", "0", 0
    ),
    "invalid extension": IceCandidate(HOST.format(9) + " generation x network-cost -1", "0", 0),
    "TCP without type": IceCandidate("candidate:1 1 tcp 1 10.77.0.1 9 typ host", "0", 0),
    "TCP of an unknown type": IceCandidate("candidate:1 1 tcp 1 10.77.0.1 9 typ host tcptype teapot", "0", 0),
    "without media": IceCandidate(HOST.format(9)),
    "unknown media": IceCandidate(HOST.format(9), "teapot"),
    "negative media": IceCandidate(HOST.format(9), None, -1),
    "large media": IceCandidate(HOST.format(9), None, 1 << 70),
    "contradictory media": IceCandidate(HOST.format(9), "0", 7),
    "long media": IceCandidate(HOST.format(9), "0" * 10_000, 0),
    "NUL in media": IceCandidate(HOST.format(9), "\0", 0),
    "unknown fragment": IceCandidate(HOST.format(9), "0", 0, "????"),
    "long fragment": IceCandidate(HOST.format(9), "0", 0, "x" * 10_000),
}


def check(error: MachineError) -> None:
    """Require an error that a user can act on and that quotes no password."""
    assert error.kind in (ErrorKind.INVALID, ErrorKind.EXHAUSTED, ErrorKind.PRECONDITION), error
    assert error.remedy
    assert "ice-pwd" not in str(error)


async def offer_to(engine: Engine, description: Description) -> None:
    """Accept an offer and answer it; a refusal must be a MachineError."""
    end = new_end(engine)
    try:
        with trio.fail_after(LONGEST):
            await end.peer.accept(description)
            await end.peer.answer()
    except MachineError as error:
        check(error)
    finally:
        end.peer.close()


async def answer_to(engine: Engine, description: Description) -> None:
    """Apply an answer to an offer; a refusal must be a MachineError."""
    end = new_end(engine)
    try:
        with trio.fail_after(LONGEST):
            await end.peer.offer()
            await end.peer.accept(description)
    except MachineError as error:
        check(error)
    finally:
        end.peer.close()


async def usable(engine: Engine) -> None:
    """Require that the engine still connects."""
    ends = new_end(engine), new_end(engine)
    await join(*ends)
    for end in ends:
        end.peer.close()


@scene
async def test_hostile_descriptions() -> None:
    assert len(DESCRIPTIONS) >= 30
    process = psutil.Process()
    async with engines(NAMES[0]) as (engine,):
        end = new_end(engine)
        sdp = (await end.peer.offer()).sdp
        sizes = []
        for _ in range(3):
            for change in DESCRIPTIONS.values():
                await offer_to(engine, Description("offer", change(sdp)))
                await answer_to(engine, Description("answer", change(sdp).replace("actpass", "active")))
            sizes.append((process.memory_info().rss, process.num_threads()))
        await usable(engine)
    assert sizes[2][0] - sizes[0][0] < GROWTH, sizes
    assert sizes[2][1] <= sizes[0][1] + 2, sizes  # libwebrtc starts one of its threads late


@scene
async def test_descriptions_above_the_limits_are_refused_before_the_engine() -> None:
    async with engines(NAMES[0]) as (engine,):
        sdp = (await new_end(engine).peer.offer()).sdp
        for row in ("too large", "NUL", "lone surrogate", "the media 1,000 times", "thousands of candidates"):
            end = new_end(engine)
            with pytest.raises(MachineError) as caught:
                await end.peer.accept(Description("offer", DESCRIPTIONS[row](sdp)))
            assert "refuses" not in str(caught.value), row


@scene
async def test_descriptions_of_an_unknown_kind_are_refused() -> None:
    async with engines(NAMES[0]) as (engine,):
        sdp = (await new_end(engine).peer.offer()).sdp
        for kind in ("rollback", "pranswer", "", "\0", "OFFER"):
            with pytest.raises(MachineError):
                await new_end(engine).peer.accept(Description(kind, sdp))  # type: ignore[arg-type]


@scene
async def test_hostile_candidates() -> None:
    assert len(CANDIDATES) >= 30
    async with engines(NAMES[0]) as (engine,):
        for early in (True, False):
            ends = new_end(engine), new_end(engine)
            if not early:
                await ends[1].peer.accept(await ends[0].peer.offer())
            for candidate in CANDIDATES.values():
                try:
                    with trio.fail_after(LONGEST):
                        await ends[1].peer.add_candidate(candidate)
                except MachineError as error:
                    check(error)
            for end in ends:
                end.peer.close()
        await usable(engine)


@scene
async def test_a_flood_of_candidates_is_stopped() -> None:
    async with engines(NAMES[0]) as (engine,):
        ends = new_end(engine), new_end(engine)
        await ends[1].peer.accept(await ends[0].peer.offer())
        descriptors = len(os.listdir("/proc/self/fd"))
        with pytest.raises(MachineError) as caught:  # noqa: PT012 - the number of calls before the refusal depends
            for port in range(1, 2 * MAX_CANDIDATES):
                await ends[1].peer.add_candidate(IceCandidate(HOST.format(port), "0", 0))
        assert caught.value.kind is ErrorKind.EXHAUSTED
        assert len(os.listdir("/proc/self/fd")) < descriptors + 20
        await usable(engine)
