"""Paths of calls from this computer to a machine: each is tried and measured."""

from __future__ import annotations

import os
import statistics
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio
from grpclib.exceptions import GRPCError

from command.cloud import login as cloud_login
from command.connection import Connection, tls_context
from command.machine.through.connect import PART, dial, direct_address, machines_context
from rpc import to_machine_error
from rpc.api import ApiClient
from rpc.client import ApiKey, Channel
from schema import ErrorKind, MachineError
from support import unwrap

if TYPE_CHECKING:
    from command.cloud.show import Part

ROBOT: Final = "viam.robot.v1.RobotService"
LIMIT: Final = 25.0  # seconds to try one path
CALLS: Final = 21  # measured calls on each path

DIRECT: Final = "direct"
WEBRTC: Final = "WebRTC"
CLOUD: Final = "through the cloud"


@dataclass(slots=True)
class Path:
    """One path. Times are in seconds, and None for a path that does not reach the machine."""

    name: str
    reason: str = ""  # why it does not reach the machine
    address: str = ""
    connected_after: float | None = None
    round_trip: float | None = None  # median of CALLS calls, one after the other
    slowest: float | None = None
    local: str | None = None  # type of the local candidate in use, with WebRTC
    remote: str | None = None
    protocol: str | None = None
    checks: int | None = None  # connectivity checks that were sent
    answers: int | None = None  # and answered
    candidates: list[str] = field(default_factory=list)  # of this computer
    machine_candidates: list[str] = field(default_factory=list)
    servers: list[str] = field(default_factory=list)  # STUN and TURN servers of the cloud

    @property
    def relayed(self) -> bool:
        """Whether a TURN server relays the connection."""
        return "relay" in (self.local, self.remote)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The paths to a part, in the order of preference of official SDKs, which the last path follows."""

    machine: str
    part: str
    state: str
    host: str  # that official SDKs dial
    paths: Sequence[Path]

    @property
    def used(self) -> Path | None:
        """The path that official SDKs take."""
        return next((path for path in self.paths if path.round_trip is not None), None)

    def fields(self) -> Mapping[str, Any]:
        """Return everything for JSON."""
        used = self.used
        return {**asdict(self), "used": used.name if used is not None else None}


async def explained(part: Part, reported: Mapping[str, Any]) -> Explanation:
    """Try all paths to a part; `reported` is its message of GetRobotPart."""
    login = cloud_login.load(os.environ).connection()
    paths: list[Path] = [
        await _tried(WEBRTC, partial(_webrtc, login, part.id)),
        await _tried(CLOUD, partial(_through_cloud, login, part.id)),
        await _tried(DIRECT, partial(_direct, login, reported)),
    ]
    return Explanation(part.machine, part.id, part.state, str(reported.get("fqdn") or ""), paths)


async def _tried(name: str, opened: Callable[[Path], AbstractAsyncContextManager[ApiClient]]) -> Path:
    """Try a path, which `opened` opens and describes, and measure calls on it."""
    path = Path(name)
    try:
        with trio.fail_after(LIMIT):
            begin = trio.current_time()
            async with opened(path) as client:
                await client.call(ROBOT, "", "get_version")
                path.connected_after = trio.current_time() - begin
                times = [await _timed(client) for _ in range(CALLS)]
        path.round_trip, path.slowest = statistics.median(times), max(times)
    except MachineError as error:
        path.reason = str(error)
    except BaseExceptionGroup as group:  # of the engine's nursery
        leaf = unwrap(group)
        if not isinstance(leaf, MachineError):
            raise
        path.reason = str(leaf)
    except OSError as error:
        path.reason = error.strerror or str(error)
    except trio.TooSlowError:
        path.reason = f"no connection within {LIMIT:g} s"
    return path


async def _timed(client: ApiClient) -> float:
    begin = trio.current_time()
    await client.call(ROBOT, "", "get_version")
    return trio.current_time() - begin


def _cloud_channel(login: Connection) -> Channel:
    credentials = ApiKey(login.api_key_id, login.api_key)
    return Channel(login.address, tls=tls_context(login), credentials=credentials)


@asynccontextmanager
async def _through_cloud(login: Connection, part: str, path: Path) -> AsyncIterator[ApiClient]:
    path.address = login.address
    async with _cloud_channel(login) as channel:
        yield ApiClient(channel, metadata={PART: part})


@asynccontextmanager
async def _direct(login: Connection, reported: Mapping[str, Any], path: Path) -> AsyncIterator[ApiClient]:
    path.address = direct_address(reported)
    if not path.address:
        raise MachineError("the machine listens at no address that other computers reach", kind=ErrorKind.UNAVAILABLE)
    context = await machines_context(login)
    if context is None:
        raise MachineError(
            "the cloud issues no certificates, by which a machine proves who it is",
            kind=ErrorKind.UNAVAILABLE,
            remedy="start machine-cloud with --tls",
        )
    credentials = ApiKey(login.api_key_id, login.api_key)
    connect = partial(dial, path.address, context, str(reported["dns_name"]))
    async with Channel(f"https://{path.address}", credentials=credentials, connect=connect) as channel:
        try:
            await channel.connection()
        except GRPCError as error:
            raise to_machine_error(error) from None
        yield ApiClient(channel)


@asynccontextmanager
async def _webrtc(login: Connection, part: str, path: Path) -> AsyncIterator[ApiClient]:
    from rpc.datachannel import CallChannel
    from rpc.peers import dialled, open_engine
    from support import Worker

    worker = Worker("WebRTC engine")
    async with worker.opened(), open_engine(worker.run) as engine, _cloud_channel(login) as signalling:
        async with dialled(engine, signalling, part) as connection:
            async with CallChannel(connection.data) as channel:
                yield ApiClient(channel)
                report = await connection.peer.report()  # the machine closes the connection with the channel
            path.local, path.remote, path.protocol = report.local, report.remote, report.protocol
            path.checks, path.answers = report.checks, report.answers
            path.address = report.remote_address or ""
            path.candidates = [candidate.text for candidate in connection.local]
            path.machine_candidates = [candidate.text for candidate in connection.remote]
            path.servers = [url for server in connection.servers for url in server.urls]


# ---- for people


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines that explain how calls reach a machine."""
    yield f"{explanation.machine} is {explanation.state}"
    for path in explanation.paths:
        yield f"  {path.name:<18} {_outcome(path)}"
        yield from (f"{'':21}{line}" for line in _details(path))
    used = explanation.used
    if used is None:
        yield "No path reaches it from this computer."
        return
    others = "" if used is explanation.paths[0] else ", because no earlier one in this list works"
    yield f"Official SDKs that dial {explanation.host} take the path {used.name!r}{others}." if explanation.host else ""
    direct = explanation.paths[-1].round_trip is not None
    yield f"`machine --cloud {explanation.machine} COMMAND` takes the path {DIRECT if direct else CLOUD!r}."


def _outcome(path: Path) -> str:
    if path.round_trip is None or path.slowest is None or path.connected_after is None:
        return f"does not work: {path.reason}"
    return (
        f"works: connected after {1000 * path.connected_after:.0f} ms, round trip {1000 * path.round_trip:.1f} ms, "
        f"at most {1000 * path.slowest:.1f} ms in {CALLS} calls"
    )


def _details(path: Path) -> Iterator[str]:
    if path.name != WEBRTC:
        if path.address:
            yield f"at {path.address}"
        return
    if path.round_trip is not None:
        way = "relayed by the TURN server" if path.relayed else "without a relay"
        answered = f", {path.answers} of {path.checks} checks answered" if path.checks else ""
        yield f"{way}: {path.local} to {path.remote} {path.address} by {path.protocol or 'UDP'}{answered}"
    for title, candidates in (("this computer", path.candidates), ("the machine", path.machine_candidates)):
        if candidates:
            yield f"candidates of {title}: {', '.join(map(_short, candidates))}"
    if path.servers:
        yield f"servers: {', '.join(path.servers)}"


def _short(candidate: str) -> str:
    """Return type, address and port of a candidate line (RFC 8839 5.1)."""
    words = candidate.split()
    return f"{words[7]} {words[4]} {words[5]}" if len(words) > 7 else candidate or "none left"
