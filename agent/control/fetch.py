"""Settings and versions from the cloud: the published call DeviceAgentConfig, at the interval of its answers."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
import trio

from agent.update.desired import DesiredVersion
from rpc.api import ApiClient
from schema import ConfigError, ErrorKind, MachineError, whole_numbers
from support import ChangeSignal, DoublingDelay
from uplink import CloudAddress
from uplink.releases import PROBLEMS_KEY

SERVICE: Final = "viam.app.agent.v1.AgentDeviceService"
CALL_LIMIT: Final = 15.0  # seconds
SHORTEST: Final = 5.0  # seconds between two calls, whatever the cloud asks for
LONGEST: Final = 3600.0
DEFAULT: Final = 10.0  # if the cloud names no interval
JITTER: Final = 0.05  # of the interval, in both directions, so that a fleet does not call at the same moment
FIRST_DELAY: Final = 1.0  # after a failed call, doubled after each further one up to the interval
SECTIONS: Final = ("advanced_settings", "network_configuration", "additional_networks", "system_configuration")

MAX_PROBLEMS: Final = 10  # that the cloud may send with an answer
MAX_TEXT: Final = 500  # characters of each of their texts

UNREACHABLE: Final = "unreachable"
REJECTED: Final = "rejected"
_OUTAGES: Final[Mapping[str, str]] = {
    UNREACHABLE: "the cloud cannot be reached; the last settings stay in force",
    REJECTED: "the cloud rejects this machine; the last settings stay in force",
}
_REJECTING: Final = frozenset({ErrorKind.UNAUTHENTICATED, ErrorKind.PERMISSION, ErrorKind.NOT_FOUND})

_log = structlog.get_logger("agent.cloud")


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of the programs, as reported to the cloud; empty if a program is not installed or does not run."""

    agent_running: str = ""
    agent_installed: str = ""
    server_running: str = ""
    server_installed: str = ""
    agent_uptime: float = 0.0  # seconds
    server_uptime: float | None = None  # seconds; None if it does not run


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of the cloud."""

    interval: float  # seconds until the next call
    settings: Mapping[str, Any]  # sections of the key `agent`, without `version_control`
    agent: DesiredVersion | None = None
    server: DesiredVersion | None = None
    problems: tuple[ConfigError, ...] = ()  # of `version_control`, which only the cloud reads


class Fetcher:
    """Calls the cloud. `offline` is "" after a successful call, otherwise UNREACHABLE or REJECTED.

    `facts` is called before each call. `deliver` receives each answer; it must not take long.
    """

    def __init__(
        self,
        address: CloudAddress,
        host: Mapping[str, Any],
        facts: Callable[[], Versions],
        deliver: Callable[[Fetched], Awaitable[None]],
    ) -> None:
        self.offline = UNREACHABLE
        self.asked = trio.Event()  # set after the first answer
        self._address, self._host, self._facts, self._deliver = address, host, facts, deliver
        self._hurried = ChangeSignal()
        self._begun = self._ended = 0  # calls
        self._call_ended = ChangeSignal()
        self._logged = ""  # the outage that is logged

    def hurry(self) -> None:
        """Make the next call now."""
        self._hurried.announce()

    async def ask(self) -> None:
        """Make a call now, and return when it has ended, with an answer that was delivered or not."""
        number = self._begun + 1
        self.hurry()
        while self._ended < number:
            await self._call_ended.next.wait()

    async def run(self) -> None:
        """Call, deliver and wait, until cancelled. Each outage is logged once."""
        interval, delay = DEFAULT, DoublingDelay(FIRST_DELAY, LONGEST)
        async with self._address.channel() as channel:
            client = ApiClient(channel)
            while True:
                hurried = self._hurried.next
                self._begun += 1
                try:
                    with trio.fail_after(CALL_LIMIT):
                        fetched = await fetch(client, self._address.part, self._host, self._facts())
                except (MachineError, OSError, trio.TooSlowError) as error:
                    self._note_failure(error)
                    wait = min(delay.next(), interval)
                else:
                    self._note_success()
                    interval = wait = fetched.interval
                    delay.reset()
                    await self._deliver(fetched)
                    self.asked.set()
                self._ended = self._begun
                self._call_ended.announce()
                with trio.move_on_after(wait * random.uniform(1 - JITTER, 1 + JITTER)):
                    await hurried.wait()

    def _note_failure(self, error: Exception) -> None:
        kind = getattr(error, "kind", ErrorKind.UNAVAILABLE)
        self.offline = REJECTED if kind in _REJECTING else UNREACHABLE
        if self.offline != self._logged:
            self._logged = self.offline
            reason = str(error) or f"no answer within {CALL_LIMIT:g} s"
            _log.warning(_OUTAGES[self.offline], reason=reason)

    def _note_success(self) -> None:
        if self.offline:
            _log.info("connected to the cloud", address=self._address.url)
            self._address.contact.mark_reached()
        self.offline = self._logged = ""


async def fetch(client: ApiClient, part: str, host: Mapping[str, Any], versions: Versions) -> Fetched:
    """Report versions to the cloud, and return its settings. Raises MachineError."""
    reply = await client.call(
        SERVICE,
        "",
        "device_agent_config",
        id=part,
        host_info=host,
        version_info={
            "agent_running": versions.agent_running,
            "agent_installed": versions.agent_installed,
            "viam_server_running": versions.server_running,
            "viam_server_installed": versions.server_installed,
        },
        agent_uptime=timedelta(seconds=versions.agent_uptime),
        viam_server_uptime=None if versions.server_uptime is None else timedelta(seconds=versions.server_uptime),
    )
    sections = {name: whole_numbers(reply.get(name) or {}) for name in SECTIONS}  # a Struct contains floats only
    advanced = dict(sections["advanced_settings"])
    problems = _problems(advanced.pop(PROBLEMS_KEY, None))
    return Fetched(
        _interval(reply.get("check_interval")),
        {**sections, "advanced_settings": advanced},
        _desired(reply.get("agent_update_info")),
        _desired(reply.get("viam_server_update_info")),
        problems,
    )


def _problems(sent: object) -> tuple[ConfigError, ...]:
    """Return the problems of versions that the cloud has sent; none if they have another form."""
    entries = [entry for entry in sent if isinstance(entry, Mapping)] if isinstance(sent, list | tuple) else []
    texts = [[str(entry.get(key, ""))[:MAX_TEXT] for key in ("path", "message", "remedy")] for entry in entries]
    return tuple(ConfigError(path, message, remedy=remedy) for path, message, remedy in texts[:MAX_PROBLEMS])


def _interval(value: object) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else 0.0
    return min(max(seconds, SHORTEST), LONGEST) if seconds > 0 else DEFAULT


def _desired(info: Mapping[str, Any] | None) -> DesiredVersion | None:
    if not info or not info.get("url"):
        return None
    return DesiredVersion(str(info.get("version", "")), str(info["url"]), bytes(info.get("sha256") or b"").hex())
