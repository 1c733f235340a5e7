"""A DHCP server that is wrong, or lies: `python3 -m tests.hil.guest.liar DEVICE ADDRESS LIE`."""

from __future__ import annotations

import sys
from ipaddress import IPv4Address

import trio

from netmgr.dhcp.codec import REPLY, DhcpKind, DhcpMessage, Option
from netmgr.dhcp.socket import SERVER_PORT, PacketSocket

ELSEWHERE = IPv4Address("10.99.0.1")  # an address that nobody has
LIES: dict[str, dict[int, dict[int, bytes]]] = {
    "mask": {kind: {Option.MASK: b"\xff\xff\xff\xff"} for kind in (DhcpKind.OFFER, DhcpKind.ACK)},
    "gateway": {kind: {Option.ROUTER: ELSEWHERE.packed} for kind in (DhcpKind.OFFER, DhcpKind.ACK)},
    "identity": {kind: {Option.SERVER: ELSEWHERE.packed} for kind in (DhcpKind.OFFER, DhcpKind.ACK)},
    "other-identity": {DhcpKind.ACK: {Option.SERVER: ELSEWHERE.packed}},
    "second": {kind: {Option.LEASE_TIME: (1).to_bytes(4, "big")} for kind in (DhcpKind.OFFER, DhcpKind.ACK)},
    "refusal": {DhcpKind.ACK: {Option.KIND: bytes((DhcpKind.NAK,))}},
    "address": {kind: {} for kind in (DhcpKind.OFFER, DhcpKind.ACK)},  # see `granted`
}
"""By name and kind of the answer: the options that differ from those of an honest server."""


def answer(message: DhcpMessage, router: IPv4Address, lie: str) -> DhcpMessage | None:
    """Return the answer to a message."""
    kind = {DhcpKind.DISCOVER: DhcpKind.OFFER, DhcpKind.REQUEST: DhcpKind.ACK}.get(DhcpKind(message.kind))
    if kind is None:
        return None
    options: dict[int, bytes] = {
        Option.KIND: bytes((kind,)),
        Option.SERVER: router.packed,
        Option.LEASE_TIME: (3600).to_bytes(4, "big"),
        Option.MASK: b"\xff\xff\xff\0",
        Option.ROUTER: router.packed,
        Option.DNS: router.packed,
    }
    granted = IPv4Address("127.0.0.1") if lie == "address" else router + 9
    return DhcpMessage(
        op=REPLY, xid=message.xid, mac=message.mac, yiaddr=granted, options={**options, **LIES[lie].get(kind, {})}
    )


async def main(device: str, address: str, lie: str) -> None:
    router = IPv4Address(address)
    with PacketSocket(device, SERVER_PORT) as connection:
        print("serving", flush=True)
        while True:
            message, _ = await connection.receive()
            reply = answer(message, router, lie)
            if reply is not None:
                await connection.send(reply, router)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
