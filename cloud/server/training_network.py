"""The cloud as training scripts see it: gRPC without TLS in the network of one job, every call made with its key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import trio

from cloud.services.common.base import Cloud
from cloud.services.target import MESSAGES, CloudRouter
from cloud.values.author import KEY
from rpc.call import ServerCore
from rpc.carrier import Identity, Peer
from rpc.http2.server import serve_http2
from rpc.limits import Limits
from training.engine.port import Connect

CONNECTIONS: Final = 8  # of one script at once


def network(cloud: Cloud) -> Callable[[str], Connect]:
    """Return a function that makes the handler of a job's connections from the id of the job's key.

    The connection decides who calls: a script that contains the key of a person cannot use it.
    """

    def of_key(subject: str) -> Connect:
        router = CloudRouter(cloud)
        core = ServerCore(
            router,
            authorize=cloud.authenticator.authorize,
            keyed=lambda: True,
            limits=Limits(max_connections=CONNECTIONS),
            messages=MESSAGES,
            offload=router.in_room,
        )
        peer, identity = Peer(_address(subject)), Identity(subject, KEY)

        async def connect(stream: trio.abc.Stream) -> None:
            await serve_http2(stream, core, peer=peer, identity=identity)

        return connect

    return of_key


def _address(subject: str) -> tuple[str, int]:
    """Return a private address that only this job has: limits count its failures for itself."""
    digits = hashlib.sha256(subject.encode()).hexdigest()
    return f"fd{digits[:2]}:{digits[2:6]}:{digits[6:10]}:{digits[10:14]}::1", 0
