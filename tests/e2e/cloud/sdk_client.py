"""Log in with the official Python SDK."""

from __future__ import annotations

from viam.app.viam_client import ViamClient
from viam.rpc.dial import DialOptions


async def signed_in(address: str, key_id: str, key: str) -> ViamClient:
    """Return a plaintext client; the caller closes it."""
    options = DialOptions.with_api_key(key, key_id)
    options.insecure = True
    return await ViamClient.create_from_dial_options(options, app_url=f"http://{address}")
