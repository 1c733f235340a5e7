"""Peer connections: data channels and media of WebRTC, behind a port that two engines implement."""
