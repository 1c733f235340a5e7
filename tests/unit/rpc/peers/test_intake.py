"""Checks of remote descriptions and candidates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpc.peers.intake import MAX_CANDIDATE, MAX_CANDIDATES, MAX_LINE, MAX_LINES, MAX_MEDIA, MAX_NAME, MAX_SDP, Intake
from rpc.peers.port import Description, IceCandidate
from schema.errors import ErrorKind, MachineError

GOOD = "candidate:783186926 1 udp 2122194687 192.0.2.2 56581 typ host generation 0 ufrag JXWX network-id 1"
SDP = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=ice-pwd:umkjO4Pe1YJ1MTddXIta3RJ5\r\n"


def kind_of(candidate: IceCandidate) -> ErrorKind:
    with pytest.raises(MachineError) as caught:
        Intake().candidate(candidate)
    return caught.value.kind


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "candidate:1 1 UDP 1 2001:db8::1 9 typ srflx raddr :: rport 0",
        "candidate:1 2 tcp 1518214911 192.0.2.2 9 typ host tcptype active",
        "candidate:a+/9 256 udp 4294967295 192.0.2.2 65535 typ relay raddr 192.0.2.3 rport 1",
    ],
)
def test_candidates_with_addresses_are_returned(text: str) -> None:
    assert Intake().candidate(IceCandidate(text, "0", 0, "JXWX")) == IceCandidate(text, "0", 0, "JXWX")
    assert Intake().candidate(IceCandidate(f"a={text}")) == IceCandidate(text)


@pytest.mark.parametrize(
    "host", ["0a7e9b3c.local", "tracker.example.com", "localhost", "999.1.1.1", "fe80::1%eth0", "1"]
)
def test_candidates_with_names_are_ignored(host: str) -> None:
    text = GOOD.replace("192.0.2.2", host)
    assert Intake().candidate(IceCandidate(text, "0")) is None
    sdp = Intake().description(Description("offer", f"{SDP}a={text}\r\na={GOOD}\r\n")).sdp
    assert sdp == f"{SDP}a={GOOD}\r\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("candidate:", ""),
        ("783186926", "x" * 33),
        (" 1 udp", " 0 udp"),
        (" 1 udp", " 257 udp"),
        ("udp", "sctp"),
        ("2122194687", "4294967296"),
        ("56581", "65536"),
        ("56581", "-1"),
        ("56581", "٩"),
        ("typ host", "typ teapot"),
        ("typ host", ""),
        ("network", "\r\na=x"),
        ("network", "\0"),
        ("network", "é"),
        ("network", "\udcff"),
        ("network", "x" * MAX_CANDIDATE),
    ],
)
def test_malformed_candidates_are_refused(old: str, new: str) -> None:
    text = GOOD.replace(old, new)
    assert kind_of(IceCandidate(text, "0", 0)) is ErrorKind.INVALID


@pytest.mark.parametrize(
    "fields",
    [
        {"mid": "x" * (MAX_NAME + 1)},
        {"mid": "\0"},
        {"fragment": "é"},
        {"fragment": "\n"},
        {"line": -1},
        {"line": MAX_MEDIA},
    ],
)
def test_malformed_places_of_candidates_are_refused(fields: dict[str, str]) -> None:
    for text in (GOOD, ""):
        assert kind_of(IceCandidate(text, **fields)) is ErrorKind.INVALID  # type: ignore[arg-type]


def test_the_number_of_candidates_is_bounded_for_a_connection() -> None:
    intake = Intake()
    half = MAX_CANDIDATES // 2
    intake.description(Description("offer", SDP + f"a={GOOD}\r\n" * half))
    for _ in range(MAX_CANDIDATES - half):
        intake.candidate(IceCandidate(GOOD, "0"))
    with pytest.raises(MachineError) as caught:
        intake.candidate(IceCandidate(GOOD.replace("192.0.2.2", "x.local"), "0"))
    assert caught.value.kind is ErrorKind.EXHAUSTED
    assert intake.candidate(IceCandidate("")) == IceCandidate("")


@pytest.mark.parametrize(
    "description",
    [
        Description("rollback", SDP),  # type: ignore[arg-type]
        Description("offer", SDP + f"a={'x' * 1_000}\r\n" * (MAX_SDP // 1_000 + 1)),
        Description("offer", SDP + f"a={'é' * 1_000}\r\n" * (MAX_SDP // 2_000 + 1)),
        Description("offer", SDP + "\0"),
        Description("offer", SDP + "\udcff"),
        Description("offer", SDP + "m=audio 9 x 0\r\n" * MAX_MEDIA),
        Description("offer", SDP + "m=audio 9 x 0\n" * MAX_MEDIA),
        Description("offer", SDP + "a=\n" * MAX_LINES),
        Description("offer", SDP + "a=" + "x" * MAX_LINE),
        Description("offer", SDP + "a=candidate:x\r\n"),
    ],
)
def test_malformed_descriptions_are_refused_without_quoting_them(description: Description) -> None:
    with pytest.raises(MachineError) as caught:
        Intake().description(description)
    assert caught.value.kind is ErrorKind.INVALID
    assert "umkjO4Pe1YJ1MTddXIta3RJ5" not in str(caught.value)


def test_line_ends_are_those_of_the_standard() -> None:
    assert Intake().description(Description("answer", SDP.replace("\r\n", "\n"))) == Description("answer", SDP)
    assert Intake().description(Description("answer", SDP)) == Description("answer", SDP)


@given(st.text(max_size=200), st.text(max_size=20), st.integers(-2, 20) | st.none())
def test_any_candidate_is_refused_ignored_or_returned(text: str, mid: str, line: int | None) -> None:
    try:
        checked = Intake().candidate(IceCandidate(text, mid, line))
    except MachineError:
        return
    assert checked is None or checked.text == text.removeprefix("a=")


@given(st.lists(st.sampled_from([*SDP.splitlines(True), f"a={GOOD}\r\n", "\0", "\n", "m=", "a=candidate:"])))
def test_any_description_is_refused_or_returned(pieces: list[str]) -> None:
    try:
        checked = Intake().description(Description("offer", "".join(pieces)))
    except MachineError:
        return
    assert "\0" not in checked.sdp
    assert Intake().description(checked) == checked
