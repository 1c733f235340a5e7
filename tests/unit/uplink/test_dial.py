"""An address of the cloud whose users share one connection."""

from __future__ import annotations

from uplink.dial import CloudAddress, shared_channel

ADDRESS = CloudAddress("http://127.0.0.1:1", "p1", "p1", "robot-secret", "s3cret")


async def test_a_shared_address_has_one_channel() -> None:
    async with shared_channel(ADDRESS) as address:
        async with address.channel() as first, address.channel() as second:
            assert first is second
        async with address.channel() as third:
            assert third is first
            assert third._nursery is not None, "it was closed by a user"
        async with ADDRESS.channel() as other:
            assert other is not first
    assert address == ADDRESS
