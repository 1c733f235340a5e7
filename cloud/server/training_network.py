"""The cloud as training scripts see it: gRPC without TLS in the network of one job, every call made with its key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from cloud.services.common.base import Cloud
from cloud.services.target import MESSAGES, CloudRouter
from cloud.values.author import KEY
from cloud.values.limits import TRAINING_PICTURES
from rpc import Identity, Limits, Peer, ServerCore
from rpc.http2 import serve_http2
from rpc.metadata import Metadata
from support import Bucket
from training.engine import Connect

CONNECTIONS: Final = 8  # of one script at once
STREAMS: Final = 16  # calls at once on one of them
BURST: Final = TRAINING_PICTURES.value
"""Calls that one start of a script may make as fast as it can: it can read each picture of the largest dataset once."""
RATE: Final = 100  # calls in a second, in the long run


def network(cloud: Cloud) -> Callable[[str], Connect]:
    """Return a function that makes the handler of a job's connections from the id of the job's key.

    The connection decides who calls: a script that contains the key of a person cannot use it. A script whose calls, on
    all its connections together, exceed BURST and RATE gets RESOURCE_EXHAUSTED.
    """

    def of_key(subject: str) -> Connect:
        router, calls = CloudRouter(cloud), Bucket(BURST, RATE)
        peer, identity = Peer(_address(subject)), Identity(subject, KEY)

        def authorize(method: str, metadata: Metadata) -> Identity:
            if calls.take(trio.current_time()):
                return identity
            text = (
                f"this training script makes more than {RATE} calls in a second: call less often, or keep the answers"
            )
            raise GRPCError(Status.RESOURCE_EXHAUSTED, text)

        core = ServerCore(
            router,
            authorize=authorize,
            keyed=lambda: True,
            limits=Limits(max_connections=CONNECTIONS, max_streams=STREAMS),
            messages=MESSAGES,
            offload=router.in_room,
        )

        async def connect(stream: trio.abc.Stream) -> None:
            await serve_http2(stream, core, peer=peer)

        return connect

    return of_key


def _address(subject: str) -> tuple[str, int]:
    """Return a private address that only this job has: limits count its failures for itself."""
    digits = hashlib.sha256(subject.encode()).hexdigest()
    return f"fd{digits[:2]}:{digits[2:6]}:{digits[6:10]}:{digits[10:14]}::1", 0
