"""Peer connections: data channels and media of WebRTC, behind a port that two engines implement.

Public, in the order in which to read them:

* `port`: Port of peer connections: what the carrier, signalling and video need of a WebRTC engine
* `dial`: Client side of signalling: connects to a machine through a cloud's SignalingService
* `engines`: Choice of the WebRTC engine: libraries are imported only when an engine is opened
* `intake`: Checks of what the other end signals, made before an engine parses it
* `media.negotiation`: Renegotiation of a peer connection over its channel "negotiation", as the official clients do it
* `servers`: Checks of the ICE servers of a peer connection, the same for all engines
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.peers.dial import HOST as HOST
    from rpc.peers.dial import SERVICE as SERVICE
    from rpc.peers.dial import dialled as dialled
    from rpc.peers.engines import engine_installed as engine_installed
    from rpc.peers.engines import open_engine as open_engine
    from rpc.peers.intake import MAX_CANDIDATES as MAX_CANDIDATES
    from rpc.peers.intake import MAX_SDP as MAX_SDP
    from rpc.peers.media.negotiation import Negotiator as Negotiator
    from rpc.peers.port import SOUND_CHANNELS as SOUND_CHANNELS
    from rpc.peers.port import SOUND_RATES as SOUND_RATES
    from rpc.peers.port import IceServer as IceServer
    from rpc.peers.port import PeerChannel as PeerChannel
    from rpc.peers.port import PeerConnection as PeerConnection
    from rpc.peers.port import PeerOptions as PeerOptions
    from rpc.peers.port import Sound as Sound
    from rpc.peers.port import SoundTrack as SoundTrack
    from rpc.peers.port import VideoFrame as VideoFrame
    from rpc.peers.port import VideoTrack as VideoTrack
    from rpc.peers.servers import MAX_URLS as MAX_URLS
    from rpc.peers.servers import check_servers as check_servers
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "port": [
                "SOUND_CHANNELS",
                "SOUND_RATES",
                "IceServer",
                "PeerChannel",
                "PeerConnection",
                "PeerOptions",
                "Sound",
                "SoundTrack",
                "VideoFrame",
                "VideoTrack",
            ],
            "dial": ["HOST", "SERVICE", "dialled"],
            "engines": ["engine_installed", "open_engine"],
            "intake": ["MAX_CANDIDATES", "MAX_SDP"],
            "media.negotiation": ["Negotiator"],
            "servers": ["MAX_URLS", "check_servers"],
        },
    )
