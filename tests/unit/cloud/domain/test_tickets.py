"""Tickets of links that log in, in the database: any replica redeems them, one of them once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from cloud.domain.permissions import credentials
from cloud.domain.permissions.authentication import CloudAuthenticator
from cloud.server.memory import MemoryCloud
from rpc.access.auth import of_pages
from rpc.access.credential_types import PART_SECRET
from rpc.access.tickets import MAX_WAITING_TICKETS, Ticket
from rpc.carrier import Peer
from tests.unit.cloud.replicas import replica

PEER = Peer(("10.0.0.1", 1))


async def test_every_replica_redeems_a_ticket_and_only_one_does(cloud: MemoryCloud) -> None:
    async with replica(cloud, hears=False) as (near, _), replica(cloud, hears=False) as (far, _):
        token = await near.sign_in(cloud.first.id, cloud.first.key)
        ticket = await near.authenticator.new_ticket(token)
        results: list[str] = []
        refusals: list[Status] = []

        async def redeem(authenticator: CloudAuthenticator) -> None:
            try:
                results.append(await authenticator.redeem_ticket(ticket, peer=PEER, life=60))
            except GRPCError as error:
                refusals.append(error.status)

        async with trio.open_nursery() as nursery:
            for place in (near, far, far, near):
                nursery.start_soon(redeem, place.authenticator)
        (session,) = results
        assert refusals == [Status.UNAUTHENTICATED] * 3
        identity = await near.authenticator.identified(session)
        assert identity is not None
        assert (identity.entity, of_pages(identity)) == (cloud.first.id, True)


async def test_a_ticket_of_a_new_or_of_a_deleted_key(cloud: MemoryCloud) -> None:
    """Replicas that hear of no events ask the database about the key."""
    async with replica(cloud, hears=False) as (near, _), replica(cloud, hears=False) as (far, _):
        rotated_key = await cloud.app("rotate_key", id=cloud.first.id)
        token = await near.sign_in(cloud.first.id, rotated_key["key"])
        first, second = [await near.authenticator.new_ticket(token) for _ in range(2)]
        assert await far.authenticator.redeem_ticket(first, peer=PEER, life=60)
        await cloud.cloud.store.write(lambda sql: sql.run("UPDATE keys SET digest = 'x' WHERE id = ?", cloud.first.id))
        with pytest.raises(GRPCError, match="not valid"):
            await far.authenticator.redeem_ticket(second, peer=PEER, life=60)


async def test_machines_make_no_tickets(cloud: MemoryCloud, machine: str) -> None:
    (part,) = await cloud.app("get_robot_parts", robot_id=machine)
    async with replica(cloud, hears=True) as (near, _):
        token = await near.sign_in(part["id"], part["secret"], PART_SECRET)
        with pytest.raises(GRPCError) as caught:
            await near.authenticator.new_ticket(token)
        assert caught.value.status is Status.PERMISSION_DENIED


async def test_tickets_of_one_key_are_limited_and_expire(cloud: MemoryCloud) -> None:
    store = cloud.cloud.store
    for number in range(MAX_WAITING_TICKETS):
        ticket = Ticket(f"digest {number}", "key", "fingerprint", 100 + number)
        await store.write(lambda sql, ticket=ticket: credentials.keep_ticket(sql, ticket, 0))
    more = Ticket("one more", "key", "fingerprint", 300)
    with pytest.raises(GRPCError, match="20 links"):
        await store.write(lambda sql: credentials.keep_ticket(sql, more, 99))
    await store.write(lambda sql: credentials.keep_ticket(sql, more, 100))  # the oldest has expired
    ended = datetime.fromtimestamp(200, UTC)
    assert await store.write(lambda sql: credentials.expire(sql, ended)) == MAX_WAITING_TICKETS - 1
    assert await store.write(lambda sql: credentials.take_ticket(sql, "digest 5")) is None
    assert await store.write(lambda sql: credentials.take_ticket(sql, "one more")) == more
