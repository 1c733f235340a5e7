"""Direct connections to machines of the cloud that have introduced themselves."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from functools import partial
from typing import Final

import trio

from engine.calls import Introduction
from rpc.client import DialTarget
from runtime.parts.remotes.dial import why

LIMIT: Final = 1.0  # seconds to connect; a machine in the same network needs some milliseconds


async def dial_direct(introduction: Introduction) -> trio.abc.Stream:
    """Connect to the first address that proves to be the machine. OSError if none does. Sets no time limit.

    Every address is tried at once. Nothing is sent before the certificate has been compared, except a TLS greeting
    without a name.
    """
    streams: list[trio.abc.Stream] = []
    failures: list[str] = []

    async def attempt(address: str) -> None:
        try:
            stream = await _open(DialTarget.parse(address), introduction.certificate)
        except (OSError, trio.BrokenResourceError) as error:
            failures.append(f"{address}: {why(error)}")
            return
        streams.append(stream)
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            for address in introduction.addresses:
                nursery.start_soon(partial(attempt, address))
    except BaseException:
        await _close(streams)
        raise
    await _close(streams[1:])
    if not streams:
        raise OSError("; ".join(failures))
    return streams[0]


async def _open(target: DialTarget, certificate: str) -> trio.abc.Stream:
    stream = await trio.open_tcp_stream(target.host, target.port)
    secure = trio.SSLStream(stream, context(), https_compatible=True)
    try:
        await secure.do_handshake()
        presented = hashlib.sha256(secure.getpeercert(binary_form=True) or b"").hexdigest()
        if not hmac.compare_digest(presented.encode(), certificate.encode()):
            raise OSError("another machine answers")
    except BaseException:
        await _close([stream])
        raise
    return secure


def context() -> ssl.SSLContext:
    """Return a context without authorities: the certificate is compared with the one that is expected."""
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    unverified.set_alpn_protocols(["h2"])
    return unverified


async def _close(streams: list[trio.abc.Stream] | list[trio.SocketStream]) -> None:
    with trio.CancelScope(shield=True):
        for stream in streams:
            await trio.aclose_forcefully(stream)
