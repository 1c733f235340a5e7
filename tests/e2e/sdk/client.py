"""Ways of connecting with the official Python SDK."""

from __future__ import annotations

import os

from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions

ADDRESS = os.environ.get("MACHINE_SDK_ADDRESS", "")
"""Address of a running machine for the tests of this folder, see tests/netns/webrtc; MACHINE_SDK_KEY is for it."""


def plaintext() -> RobotClient.Options:
    """Return options for a direct connection without TLS or credentials: no native helper, so only loopback is used.

    Those for ADDRESS are of the default dial.
    """
    if ADDRESS:
        key_id, key = os.environ["MACHINE_SDK_KEY"].split()
        dial = DialOptions.with_api_key(key, key_id)
        dial.insecure = True
        return RobotClient.Options(dial_options=dial, check_connection_interval=0)
    return RobotClient.Options(
        dial_options=DialOptions(disable_webrtc=True, insecure=True, timeout=5), check_connection_interval=0
    )


def over_tls(key_id: str | None = None, key: str | None = None) -> RobotClient.Options:
    """Return options for a direct TLS connection, with an optional API key; nothing is verified on loopback."""
    credentials = Credentials(type="api-key", payload=key) if key is not None else None
    dial = DialOptions(disable_webrtc=True, auth_entity=key_id, credentials=credentials, timeout=5)
    return RobotClient.Options(dial_options=dial, check_connection_interval=0)
