"""Which APIs of a module this machine has no class for, and what their services look like."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from rpc.client import Channel
from rpc.silence import within
from runtime.apis import BASES
from runtime.modules.client import Offer
from schema.errors import MachineError
from schema.names import API

if TYPE_CHECKING:
    from runtime.modules.foreign import ForeignApi

LEARN_LIMIT: Final = 10.0  # seconds for what one service looks like


async def learn(channel: Channel, offer: Offer) -> tuple[dict[API, ForeignApi], dict[API, str]]:
    """What is known of each such API, and why nothing is known of the others."""
    wanted = {api: service for api, service in offer.services if api not in BASES}
    apis: dict[API, ForeignApi] = {}
    faults: dict[API, str] = {}

    async def one(api: API, service: str) -> None:
        try:
            apis[api] = await within(LEARN_LIMIT, partial(_describe, channel, api, service))
        except trio.TooSlowError:
            faults[api] = f"its server did not tell within {LEARN_LIMIT:g} s what {service} looks like"
        except MachineError as error:
            faults[api] = error.message

    async with trio.open_nursery() as nursery:
        for api, service in wanted.items():
            nursery.start_soon(one, api, service)
    return apis, faults


async def _describe(channel: Channel, api: API, service: str) -> ForeignApi:
    from runtime.modules import foreign, reflection

    known = foreign.published(api)
    if known is not None:
        return known
    foreign.check_service(api, service)
    return foreign.ForeignApi(api, await reflection.service_descriptor(channel, service))
