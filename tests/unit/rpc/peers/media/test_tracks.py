"""Tracks of a connection above senders of a fake engine, and the frames that they carry."""

from __future__ import annotations

from typing import Any

import pytest

from rpc.peers.media.tracks import Senders
from rpc.peers.media.wrtc_tracks import track_report
from rpc.peers.port import MAX_TRACKS, Sound, TrackReport, VideoFrame
from schema.errors import ErrorKind, MachineError

FRAME = VideoFrame(4, 2, bytes(12))


class FakeSender:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.transceiver: Any = object()
        self.streams: list[str] = []
        self.frames: list[VideoFrame] = []
        self.sending = False
        self.stopped = False
        self.taken = True

    def accepted(self) -> bool:
        return self.taken

    def start(self, stream: str) -> None:
        self.streams.append(stream)

    def stop(self) -> None:
        self.streams.append("")

    def write(self, frame: VideoFrame) -> None:
        self.frames.append(frame)

    async def report(self) -> TrackReport:
        return TrackReport(frames=len(self.frames))


@pytest.fixture
def made() -> list[FakeSender]:
    return []


@pytest.fixture
def senders(made: list[FakeSender]) -> Senders[VideoFrame]:
    def make() -> FakeSender:
        made.append(FakeSender())
        return made[-1]

    return Senders(make, MAX_TRACKS, "videos")


@pytest.mark.parametrize(("width", "height", "size"), [(4, 2, 11), (4, 2, 13), (3, 2, 9), (4, 3, 18), (0, 0, 0)])
def test_a_frame_is_complete_and_even(width: int, height: int, size: int) -> None:
    with pytest.raises(ValueError):
        VideoFrame(width, height, bytes(size))


@pytest.mark.parametrize(
    ("rate", "channels", "size"), [(7_999, 1, 2), (192_001, 1, 2), (16_000, 0, 2), (16_000, 3, 6), (16_000, 2, 6)]
)
def test_a_sound_is_complete(rate: int, channels: int, size: int) -> None:
    with pytest.raises(ValueError):
        Sound(rate, channels, bytes(size))
    assert Sound(16_000, 2, bytes(8)).frames == 2


def test_frames_pass_only_while_the_other_end_receives(senders: Senders[VideoFrame], made: list[FakeSender]) -> None:
    track = senders.add("cam")
    for taken, frames in ((False, 0), (True, 1), (False, 1), (True, 2)):
        made[0].taken = taken
        senders.negotiated()
        track.send(FRAME)
        assert track.live is taken
        assert len(made[0].frames) == frames


def test_a_track_is_not_live_before_its_own_negotiation(senders: Senders[VideoFrame], made: list[FakeSender]) -> None:
    track = senders.add("cam")
    senders.negotiated()
    track.close()
    again = senders.add("cam")
    assert (len(made), again.live) == (1, False)


async def test_a_sender_is_used_again_after_its_track(senders: Senders[VideoFrame], made: list[FakeSender]) -> None:
    tracks = [senders.add("a"), senders.add("b")]
    made[0].sending = True
    tracks[0].close()
    tracks[0].close()
    again = senders.add("c")
    assert len(made) == 2
    assert made[0].streams == ["a", "", "c"]
    tracks[0].send(FRAME)
    assert not tracks[0].live
    assert made[0].frames == []
    with pytest.raises(MachineError):
        await tracks[0].report()
    assert (await again.report()).frames == 0
    assert senders.transceivers() == [sender.transceiver for sender in made]


def test_a_sender_that_the_other_end_has_refused_is_replaced(
    senders: Senders[VideoFrame], made: list[FakeSender]
) -> None:
    senders.add("a").close()
    made[0].stopped = True
    senders.add("b").close()
    senders.add("c")
    assert [sender.streams for sender in made] == [["a", ""], ["b", "", "c"]]


def test_there_is_a_limit_of_tracks(senders: Senders[VideoFrame]) -> None:
    tracks = [senders.add(f"cam{number}") for number in range(MAX_TRACKS)]
    with pytest.raises(MachineError) as caught:
        senders.add("more")
    assert caught.value.kind is ErrorKind.EXHAUSTED
    tracks[3].close()
    senders.add("more")


def test_the_end_of_the_connection_ends_tracks_without_touching_the_engine(
    senders: Senders[VideoFrame], made: list[FakeSender]
) -> None:
    track = senders.add("cam")
    made[0].sending = True
    senders.end()
    track.close()
    assert not track.live
    assert made[0].streams == ["cam"]


def test_a_report_is_read_from_the_statistics() -> None:
    stream = {
        "id": "O",
        "type": "outbound-rtp",
        "codecId": "C",
        "frameWidth": 320,
        "frameHeight": 240,
        "framesEncoded": 7,
        "totalEncodeTime": 0.5,
        "targetBitrate": 3e5,
        "qualityLimitationReason": "bandwidth",
        "bytesSent": 99,
    }
    codec = {"id": "C", "type": "codec", "mimeType": "video/VP8"}
    expected = TrackReport("video/VP8", 320, 240, 7, 0.5, 3e5, "bandwidth", 99)
    assert track_report([codec, stream]) == expected
    assert track_report([codec]) == TrackReport()
    assert track_report([{"id": "O", "type": "outbound-rtp"}]) == TrackReport()
