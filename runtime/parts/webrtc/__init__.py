"""Clients of the machine that connect by WebRTC."""
