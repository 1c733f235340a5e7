from __future__ import annotations

import base64
import json

import pytest

from rpc.api.messages import signaling
from rpc.peers.port import Description, IceCandidate, IceServer
from rpc.peers.signals import (
    candidate_fields,
    candidate_of,
    decode_description,
    encode_description,
    servers_of,
    with_candidates,
)
from schema.errors import ErrorKind, MachineError


def encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def test_a_description_has_the_published_form() -> None:
    message = encode_description(Description("offer", "v=0\r\n"))
    assert json.loads(base64.b64decode(message)) == {"type": "offer", "sdp": "v=0\r\n"}
    assert decode_description(message) == Description("offer", "v=0\r\n")
    assert decode_description(encoded({"type": "answer", "sdp": "", "extra": 1})) == Description("answer", "")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "%",
        "ä",
        base64.b64encode(b"\xff").decode(),
        encoded([]),
        encoded({"type": "offer"}),
        encoded({"type": "pranswer", "sdp": ""}),
        encoded({"type": "offer", "sdp": 5}),
        base64.b64encode(b"[" * 100_000).decode(),
        encoded({"type": "offer", "sdp": ""}) + "\n",
    ],
)
def test_other_messages_are_refused(message: str) -> None:
    with pytest.raises(MachineError, match="not a session description") as caught:
        decode_description(message)
    assert caught.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize("candidate", [IceCandidate("c"), IceCandidate("c", "0", 0, "u"), IceCandidate("", None, 3)])
def test_candidates_are_unchanged_by_a_message(candidate: IceCandidate) -> None:
    assert candidate_of(signaling().ICECandidate(**candidate_fields(candidate))) == candidate


def test_empty_names_of_a_candidate_are_none() -> None:
    """The Python SDK sends them; libwebrtc refuses a candidate of the media "", although its index is valid."""
    message = signaling().ICECandidate(candidate="c", sdp_mid="", sdpm_line_index=0, username_fragment="")
    assert candidate_of(message) == IceCandidate("c", None, 0, None)


def test_candidates_in_a_description() -> None:
    media = ("m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0", "m=video 9 x 96\r\na=mid:1")
    description = Description("answer", "\r\n".join(("v=0\r\ns=-", *media)) + "\r\n")
    candidates = [
        IceCandidate("candidate:1", "0", 0),
        IceCandidate("candidate:2", "1", 1),
        IceCandidate("candidate:3"),
        IceCandidate(""),
    ]
    assert with_candidates(description, candidates).sdp.split("\r\n") == [
        "v=0",
        "s=-",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        "a=mid:0",
        "a=candidate:1",
        "a=candidate:3",
        "a=end-of-candidates",
        "m=video 9 x 96",
        "a=mid:1",
        "a=candidate:2",
        "a=end-of-candidates",
        "",
    ]


def test_servers() -> None:
    config = signaling().WebRTCConfig(
        additional_ice_servers=[{"urls": ["stun:a", "turn:b"], "username": "u", "credential": "c"}]
    )
    assert servers_of(config) == (IceServer(("stun:a", "turn:b"), "u", "c"),)
