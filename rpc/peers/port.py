"""Port of peer connections: what the carrier, signalling and video need of a WebRTC engine. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, Protocol

MAX_MESSAGE: Final = 65_535
"""Bytes of the largest message of a data channel; libraries of clients refuse larger ones."""

HIGH_WATER: Final = 1 << 20
"""Buffered bytes of a channel above which `Channel.send` waits."""

MAX_UNREAD: Final = 32 << 20
"""Bytes of a channel that may be received and not yet read. More end it: engines have no means to slow the sender."""

MAX_TRACKS: Final = 8
"""Outgoing videos of one connection. Each has its own encoder, and a part of every later session description."""

MAX_SOUNDS: Final = 4
"""Outgoing sounds of one connection, in addition to its videos."""

SOUND_RATES: Final = (8_000, 192_000)  # samples per second of a sound, the lowest and the highest
SOUND_CHANNELS: Final = (1, 2)
MAX_SOUND: Final = 1.0  # seconds of sound that an engine may queue; older sound is dropped


class PeerState(StrEnum):
    """State of a peer connection, with the names of RTCPeerConnectionState."""

    NEW = "new"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Description:
    """Session description of one end."""

    kind: Literal["offer", "answer"]
    sdp: str


@dataclass(frozen=True, slots=True)
class IceCandidate:
    """ICE candidate as it is signalled; an empty `text` ends the candidates."""

    text: str
    mid: str | None = None
    line: int | None = None  # index of the media description
    fragment: str | None = None  # user name fragment


@dataclass(frozen=True, slots=True)
class IceServer:
    """STUN or TURN server, with the credentials for TURN."""

    urls: tuple[str, ...]
    username: str = ""
    credential: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """Settings of a peer connection."""

    servers: tuple[IceServer, ...] = ()
    relay_only: bool = False


@dataclass(frozen=True, slots=True)
class PathReport:
    """Network path that a peer connection uses now; None for what the engine does not report."""

    local: str | None = None  # type of the local candidate: "host", "srflx", "prflx" or "relay"
    remote: str | None = None
    protocol: str | None = None  # "udp" or "tcp"
    remote_address: str | None = None
    round_trip_s: float | None = None
    bytes_sent: int = 0
    bytes_received: int = 0
    checks: int | None = None  # connectivity checks that were sent on this path
    answers: int | None = None  # and those that were answered; the difference shows loss


@dataclass(frozen=True, slots=True)
class VideoFrame:
    """Picture in I420: the planes Y, U and V without padding, in the video range of Rec. ITU-R BT.601.

    Raises ValueError if width and height are not even, or `planes` has another size.
    """

    width: int
    height: int
    planes: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if self.width < 2 or self.height < 2 or self.width % 2 or self.height % 2:
            raise ValueError(f"a frame has {self.width} x {self.height} pixels; both must be even")
        if len(self.planes) != self.width * self.height * 3 // 2:
            raise ValueError(f"{len(self.planes)} bytes are not the planes of {self.width} x {self.height} pixels")


@dataclass(frozen=True, slots=True)
class Sound:
    """Samples of a sound: 16 bits, little-endian, the channels of each time together.

    Raises ValueError if rate or channels are not those of SOUND_RATES and SOUND_CHANNELS, or samples are incomplete.
    """

    rate: int  # samples per second of each channel
    channels: int
    samples: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not SOUND_RATES[0] <= self.rate <= SOUND_RATES[1] or self.channels not in SOUND_CHANNELS:
            raise ValueError(f"a sound cannot have {self.rate} samples per second and {self.channels} channels")
        if len(self.samples) % (2 * self.channels):
            raise ValueError(f"{len(self.samples)} bytes are not complete samples of {self.channels} channels")

    @property
    def frames(self) -> int:
        """Samples of each channel."""
        return len(self.samples) // (2 * self.channels)


@dataclass(frozen=True, slots=True)
class TrackReport:
    """What the encoder of one track does now; None for what the engine does not report."""

    codec: str | None = None  # such as "video/VP8" or "audio/opus"
    width: int | None = None  # of the encoded picture, which may be smaller than the frames
    height: int | None = None
    frames: int | None = None  # encoded since the negotiation
    encoding_s: float | None = None  # time spent on encoding them
    target_rate: float | None = None  # bits per second that the link is estimated to carry for this track
    limited_by: str | None = None  # "bandwidth", "cpu", "other" or "none"
    bytes_sent: int = 0


class VideoTrack(Protocol):
    """Outgoing video. The engine encodes it for its connection, and adapts rate and size to the link if it can."""

    @property
    def live(self) -> bool:
        """Whether the last negotiation has found that the other end takes this video."""
        ...

    def send(self, frame: VideoFrame) -> None:
        """Pass the newest frame to the encoder. Never waits; frames that the encoder has no time for are dropped.

        Ignored unless the track is live.
        """
        ...

    async def report(self) -> TrackReport:
        """Return what the encoder does now. Raises MachineError after the end of the track or of its connection."""
        ...

    def close(self) -> None:
        """End the video; the other end learns it in the next negotiation. Idempotent."""
        ...


class SoundTrack(Protocol):
    """Outgoing sound. The engine resamples it, and encodes it with Opus for its connection."""

    @property
    def live(self) -> bool:
        """Whether the last negotiation has found that the other end takes this sound."""
        ...

    def send(self, frame: Sound) -> None:
        """Pass the samples that follow to the encoder. Never waits; the oldest are dropped beyond MAX_SOUND.

        Ignored unless the track is live.
        """
        ...

    async def report(self) -> TrackReport:
        """Return what the encoder does now. Raises MachineError after the end of the track or of its connection."""
        ...

    def close(self) -> None:
        """End the sound; the other end learns it in the next negotiation. Idempotent."""
        ...


class PeerChannel(Protocol):
    """Data channel, reliable and ordered. It closes with its connection; one task may call `receive` at a time."""

    @property
    def label(self) -> str:
        """Name of the channel."""
        ...

    async def wait_open(self) -> None:
        """Wait until the channel is open. Raises trio.BrokenResourceError if it closes before."""
        ...

    async def send(self, data: bytes | str) -> None:
        """Queue one message of at most `MAX_MESSAGE` bytes; wait while more than `HIGH_WATER` bytes are buffered.

        A checkpoint; it waits until the channel is open, too. Cancelled while it waits, it has sent nothing. Raises
        trio.BrokenResourceError after the end of the channel, and ValueError for a larger message.
        """
        ...

    async def wait_room(self, limit: int = HIGH_WATER) -> None:
        """Wait while more than `limit` bytes are buffered, at least `HIGH_WATER`; return at the end of the channel too.

        Not a checkpoint if there is room. `send` waits by itself; this is for tasks that use `send_nowait`.
        """
        ...

    def send_nowait(self, data: bytes | str) -> None:
        """Queue one message whatever is buffered. Does nothing unless the channel is open."""
        ...

    async def receive(self) -> bytes | str:
        """Return the next message. Raises trio.EndOfChannel after the end of the channel."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes queued and not yet sent."""
        ...

    def close(self) -> None:
        """Close the channel; calls that wait are woken up."""
        ...


class PeerConnection(Protocol):
    """One WebRTC connection. The creator closes it; an engine closes what is left at its own end."""

    @property
    def state(self) -> PeerState:
        """Present state."""
        ...

    async def wait_state(self, *states: PeerState) -> PeerState:
        """Wait until the connection is in one of these states, and return it.

        Also returns a state that was left again before the caller ran. Raises trio.BrokenResourceError if the
        connection is closed and CLOSED is not one of the states.
        """
        ...

    def channel(self, label: str, number: int) -> PeerChannel:
        """Return a channel with a number that both ends have agreed on; call before the first description."""
        ...

    def add_video(self, stream: str) -> VideoTrack:
        """Return a new outgoing video, which is live after the next negotiation; `stream` names it at the other end.

        Raises MachineError: INVALID for a name that a session description cannot carry, EXHAUSTED beyond `MAX_TRACKS`.
        """
        ...

    def add_sound(self, stream: str) -> SoundTrack:
        """Return a new outgoing sound, as `add_video` does; EXHAUSTED beyond `MAX_SOUNDS`."""
        ...

    async def offer(self) -> Description:
        """Make an offer, apply it as the local description, and begin to gather candidates."""
        ...

    async def answer(self) -> Description:
        """Make the answer to the remote offer, apply it as the local description, and begin to gather candidates."""
        ...

    async def accept(self, description: Description) -> None:
        """Apply the description of the other end. Raises MachineError (INVALID) if it cannot be used."""
        ...

    async def add_candidate(self, candidate: IceCandidate) -> None:
        """Add a candidate of the other end. A candidate with a host name is ignored.

        Raises MachineError: INVALID if it cannot be used, EXHAUSTED if there are too many.
        """
        ...

    async def next_candidate(self) -> IceCandidate | None:
        """Return the next local candidate, or None after the last one. At most one task at a time may wait.

        An engine may put candidates into its description and return None at once.
        """
        ...

    async def report(self) -> PathReport:
        """Return the path in use."""
        ...

    def close(self) -> None:
        """Close the connection and its channels. Idempotent."""
        ...


class Engine(Protocol):
    """Factory of peer connections; a context manager of the implementation runs it in a nursery."""

    @property
    def name(self) -> str:
        """Name of the library, for logs."""
        ...

    def connect(self, options: PeerOptions) -> PeerConnection:
        """Return a new peer connection."""
        ...
