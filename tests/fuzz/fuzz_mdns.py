"""Fuzz multicast DNS messages: `python -m tests.fuzz.fuzz_mdns [CORPUS]` with atheris installed."""

from __future__ import annotations

import sys
from ipaddress import IPv4Address

from rpc.network.mdns import PTR, SRV, TXT, A, DnsRecord, MdnsError, Message, Question, Service, decode, encode

_NAME = ("rover", "_rpc", "_tcp", "local")

SEEDS = (
    encode(Message((Question(_NAME[1:], PTR, unicast=True),), (DnsRecord(_NAME[1:], PTR, _NAME, 4500),))),
    encode(
        Message(
            answers=(
                DnsRecord(_NAME, SRV, Service(8080, ("rover", "local")), 120, flush=True),
                DnsRecord(_NAME, TXT, (b"grpc", b"a=b"), 4500),
                DnsRecord(("rover", "local"), A, IPv4Address("10.0.0.1"), 120),
            ),
            response=True,
        )
    ),
)


def run_input(data: bytes) -> None:
    """Check that a decoded message can be encoded and decodes to the same. No input raises."""
    try:
        message = decode(data)
        again = encode(message)
    except MdnsError:
        return
    if len(again) <= 9000:
        assert decode(again) == message


def main() -> None:
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, run_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
