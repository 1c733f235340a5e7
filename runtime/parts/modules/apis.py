"""Descriptors of a module's APIs that this machine has no class for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from engine import BASES
from rpc import within
from rpc.client import Channel
from runtime.parts.modules.client import Offer
from schema import API, MachineError

if TYPE_CHECKING:
    from runtime.parts.modules.foreign import ForeignApi

LEARN_LIMIT: Final = 10.0  # seconds to get the descriptor of one service


async def learn(channel: Channel, offer: Offer) -> tuple[dict[API, ForeignApi], dict[API, str]]:
    """Return the APIs of `offer` that this machine has no class for, and an error for each that has no descriptor."""
    unknown = {api: service for api, service in offer.services if api not in BASES}
    apis: dict[API, ForeignApi] = {}
    faults: dict[API, str] = {}

    async def describe(api: API, service: str) -> None:
        try:
            apis[api] = await within(LEARN_LIMIT, partial(_describe, channel, api, service))
        except trio.TooSlowError:
            faults[api] = f"its server did not return the descriptor of {service} within {LEARN_LIMIT:g} s"
        except MachineError as error:
            faults[api] = error.message

    async with trio.open_nursery() as nursery:
        for api, service in unknown.items():
            nursery.start_soon(describe, api, service)
    return apis, faults


async def _describe(channel: Channel, api: API, service: str) -> ForeignApi:
    from runtime.parts.modules import foreign, reflection

    published = foreign.published(api)
    if published is not None:
        return published
    foreign.check_service(api, service)
    return foreign.ForeignApi(api, await reflection.service_descriptor(channel, service))
