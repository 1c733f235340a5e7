"""The network checks. They run concurrently, each with a time limit, and raise nothing but cancellation."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import trio

from runtime.parts.netcheck import dns, icmp, stun
from runtime.parts.netcheck.finding import NetcheckFinding, Outcome, loss, mapping
from runtime.parts.netcheck.targets import Targets, split

LIMIT: Final = 5.0  # seconds for one target; reference value
PING_LIMIT: Final = 25.0  # seconds for all echo requests to one target; reference value
RESEND: Final = 1.0  # seconds until an unanswered datagram is sent again

Job = Callable[[], Awaitable[list[NetcheckFinding]]]

PING_REMEDY: Final = (
    "this user is not allowed to send ICMP: run sysctl -w net.ipv4.ping_group_range='0 2147483647', or run as root"
)

_FAILURES: Final = (OSError, trio.BrokenResourceError, dns.DnsError, stun.StunError, ValueError)


async def check(targets: Targets, *, only: Sequence[str] = ()) -> list[NetcheckFinding]:
    """Run all checks, or `only` these kinds, and return the findings in the order of the targets."""
    jobs: list[tuple[str, Job]] = [
        *(("dns", _bound(_dns, server, targets.question)) for server in targets.dns),
        *(("resolve", _bound(_resolve, name)) for name in targets.resolve),
        ("stun", _bound(_stun, targets.stun)),
        *(("stun-tcp", _bound(_stun_tcp, server)) for server in targets.stun_tcp),
        ("ping", _bound(_pings, targets)),
    ]
    selected = [job for kind, job in jobs if not only or kind in only]
    findings: list[list[NetcheckFinding]] = [[] for _ in selected]

    async def run(index: int, job: Job) -> None:
        findings[index] = await job()

    async with trio.open_nursery() as nursery:
        for index, job in enumerate(selected):
            nursery.start_soon(run, index, job)
    return [finding for group in findings for finding in group]


def _bound(function: Callable[..., Awaitable[list[NetcheckFinding]]], *arguments: object) -> Job:
    return lambda: function(*arguments)


async def _timed(check: str, target: str, action: Callable[[], Awaitable[str]]) -> list[NetcheckFinding]:
    """Check one target. `action` returns the detail of the finding, or raises one of _FAILURES."""
    begun = trio.current_time()
    outcome: Outcome = "failed"
    detail = f"no answer within {LIMIT:g} s"
    with trio.move_on_after(LIMIT):
        try:
            detail = await action()
            outcome = "ok"
        except _FAILURES as error:
            detail = _reason(error)
    took = (trio.current_time() - begun) * 1000
    return [NetcheckFinding(check, target, outcome, detail, took if outcome == "ok" else None)]


def _reason(error: BaseException) -> str:
    """Return the text of an error; an OSError of trio.open_tcp_stream may have its reasons inside."""
    inner = error.__cause__
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    for cause in (inner, error):
        if isinstance(cause, OSError) and not isinstance(cause, socket.gaierror) and cause.errno:
            return os.strerror(cause.errno)
    return str(error)


async def _dns(server: str, question: str) -> list[NetcheckFinding]:
    async def ask() -> str:
        number = random.getrandbits(16)
        stream = await trio.open_tcp_stream(*split(server))
        async with stream:
            await stream.send_all(dns.query(number, question))
            (size,) = struct.unpack(">H", await _exactly(stream, 2))
            addresses = dns.answer(await _exactly(stream, size), number)
        return f"{question}: {', '.join(addresses) or 'no address'}"

    return await _timed("dns", server, ask)


async def _resolve(name: str) -> list[NetcheckFinding]:
    async def ask() -> str:
        addresses = await trio.socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return ", ".join(dict.fromkeys(str(address[0]) for *_, address in addresses))

    return await _timed("resolve", name, ask)


async def _stun_tcp(server: str) -> list[NetcheckFinding]:
    async def ask() -> str:
        transaction = random.randbytes(12)
        stream = await trio.open_tcp_stream(*split(server))
        async with stream:
            await stream.send_all(stun.request(transaction))
            head = await _exactly(stream, stun.HEADER)
            host, port = stun.answer(head + await _exactly(stream, stun.length(head)), transaction)
        return f"seen as {host}:{port}"

    return await _timed("stun-tcp", server, ask)


async def _stun(servers: Sequence[str]) -> list[NetcheckFinding]:
    """Ask all servers from one socket. If they see different addresses, the router's NAT is symmetric."""
    begun = trio.current_time()
    waiting: dict[bytes, str] = {random.randbytes(12): server for server in servers}
    results: dict[str, NetcheckFinding] = {}
    seen: list[tuple[str, int]] = []
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        await sock.bind(("0.0.0.0", 0))

        async def ask(transaction: bytes, server: str) -> None:
            try:
                host, port = split(server)
                family = await trio.socket.getaddrinfo(host, port, family=socket.AF_INET, type=socket.SOCK_DGRAM)
                while transaction in waiting:
                    await sock.sendto(stun.request(transaction), family[0][4])
                    await trio.sleep(RESEND)
            except _FAILURES as error:
                waiting.pop(transaction, None)
                results[server] = NetcheckFinding("stun", server, "failed", _reason(error))

        async def listen() -> None:
            while waiting:
                message, _ = await sock.recvfrom(2048)
                transaction = stun.transaction_of(message)
                server = waiting.pop(transaction, None)
                if server is None:
                    continue
                try:
                    address = stun.answer(message, transaction)
                except stun.StunError as error:
                    results[server] = NetcheckFinding("stun", server, "failed", str(error))
                    continue
                seen.append(address)
                took = (trio.current_time() - begun) * 1000
                results[server] = NetcheckFinding("stun", server, "ok", f"seen as {address[0]}:{address[1]}", took)

        with trio.move_on_after(LIMIT):
            async with trio.open_nursery() as nursery:
                for transaction, server in tuple(waiting.items()):
                    nursery.start_soon(ask, transaction, server)
                await listen()
                nursery.cancel_scope.cancel()
    none = f"no answer within {LIMIT:g} s"
    findings = [results.get(server, NetcheckFinding("stun", server, "failed", none)) for server in servers]
    symmetric = mapping(seen)
    return [*findings, *([NetcheckFinding("stun", "router", "note", symmetric)] if symmetric else [])]


async def _pings(targets: Targets) -> list[NetcheckFinding]:
    """Ping all targets concurrently. The gateway need not answer if a target beyond it does."""
    times: dict[str, list[float] | str] = {}

    async def run(name: str) -> None:
        address = gateway() if name == "gateway" else name
        times[name] = await _ping(address, targets.probes, targets.probe_period_s) if address else "no default route"

    async with trio.open_nursery() as nursery:
        for name in targets.ping:
            nursery.start_soon(run, name)
    beyond = any(name != "gateway" and times[name] and not isinstance(times[name], str) for name in targets.ping)
    findings = []
    for name in targets.ping:
        result = times[name]
        if isinstance(result, str):
            outcome: Outcome = "skipped" if result == PING_REMEDY else "failed"
            findings.append(NetcheckFinding("ping", name, outcome, result))
        else:
            findings.append(loss(name, targets.probes, result, gateway=name == "gateway", beyond=beyond))
    return findings


async def _ping(address: str, probes: int, period: float) -> list[float] | str:
    """Return the round-trip times of received answers in seconds, or why no request could be sent."""
    try:
        sock = _icmp_socket()
    except PermissionError:
        return PING_REMEDY
    except OSError as error:
        return str(error.strerror)
    times: list[float] = []
    with sock, trio.move_on_after(PING_LIMIT):
        try:
            await sock.connect((address, 0))
            for sequence in range(1, probes + 1):
                begun = trio.current_time()
                await sock.send(icmp.request(sequence, sequence))
                with trio.move_on_after(period):
                    while icmp.reply_sequence(await sock.recv(2048)) != sequence:
                        pass
                    times.append(trio.current_time() - begun)
                if sequence < probes:
                    await trio.sleep_until(begun + period)
        except OSError as error:
            return str(error.strerror or error)
    return times


def _icmp_socket() -> trio.socket.SocketType:
    try:
        return trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except PermissionError:
        return trio.socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def gateway(route: Path = Path("/proc/net/route")) -> str:
    """Return the address of the default route's gateway (proc(5)), or an empty string."""
    try:
        lines = route.read_text().splitlines()[1:]
    except OSError:
        return ""
    for line in lines:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            return socket.inet_ntoa(struct.pack("=I", int(fields[2], 16)))
    return ""


async def _exactly(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await stream.receive_some(count - len(data))
        if not more:
            raise dns.DnsError("the server closed the connection without an answer")
        data += more
    return data
