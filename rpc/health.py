"""Standard health service, grpc.health.v1: whether a server and each of its services currently answer calls.

The empty name is the server as a whole. `Check` of the server needs no token, so that load balancers and supervisors
can use it; everything else needs the same credentials as other calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from support import ChangeSignal

HEALTH: Final = "grpc.health.v1.Health"
CHECK: Final = f"/{HEALTH}/Check"

Serves = Callable[[str], bool | None]
"""`serves(service)` returns whether it currently answers calls, None for an unknown service. Must not block."""
Listen = Callable[[Callable[[], None]], Awaitable[None]]
"""`listen(ring)` calls `ring` whenever the result of `serves` may have changed, until cancelled."""


async def never(ring: Callable[[], None]) -> None:
    """Listen function for a health that does not change while the server runs."""
    await trio.sleep_forever()


def health(
    serves: Serves, listen: Listen = never, *, token: Callable[[], bool] = lambda: False
) -> Mapping[str, Handler]:
    """Return the handlers of Check and Watch, by path; `token()` is whether Check of a single service needs a token."""
    from grpclib.health.v1 import health_pb2 as messages

    answers = {
        True: messages.HealthCheckResponse.SERVING,
        False: messages.HealthCheckResponse.NOT_SERVING,
        None: messages.HealthCheckResponse.SERVICE_UNKNOWN,
    }

    async def requested_service(stream: Any) -> str:
        request = await stream.recv_message()
        if request is None:
            raise GRPCError(Status.INVALID_ARGUMENT, "the request is missing")
        return str(request.service)

    async def check(stream: Any) -> None:
        service = await requested_service(stream)
        if service and token() and stream.identity is None:
            raise GRPCError(
                Status.UNAUTHENTICATED, "without a token, only the health of the whole server can be checked"
            )
        state = serves(service)
        if state is None:
            raise GRPCError(Status.NOT_FOUND, f"there is no service {service[:100]!r}")
        await stream.send_message(messages.HealthCheckResponse(status=answers[state]))

    async def watch(stream: Any) -> None:
        service = await requested_service(stream)
        changes = ChangeSignal()
        failures: list[Exception] = []  # raised outside the nursery, not in a group

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen, changes.announce)
            last = -1
            try:
                while True:
                    change = changes.next
                    if (status := answers[serves(service)]) != last:
                        await stream.send_message(messages.HealthCheckResponse(status=status))
                        last = status
                    await change.wait()
            except Exception as error:
                failures.append(error)
                nursery.cancel_scope.cancel()
        raise failures[0]

    kinds = ((check, "Check", Cardinality.UNARY_UNARY), (watch, "Watch", Cardinality.UNARY_STREAM))
    return {
        f"/{HEALTH}/{name}": Handler(function, kind, messages.HealthCheckRequest, messages.HealthCheckResponse)
        for function, name, kind in kinds
    }
