"""The checks of a machine that the cloud manages: all of them at the start, names and packet loss every 5 minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
import trio

from nursery_graph import Node
from rpc.addresses import is_loopback_name
from runtime.machine import INTERNAL
from runtime.netcheck.checks import check
from runtime.netcheck.command import cloud_host
from runtime.netcheck.finding import Finding, failures
from runtime.netcheck.targets import Targets, load
from runtime.parts import Surroundings
from schema.machine import MachineDocument
from telemetry.names import ROOT

NODE: Final = f"{INTERNAL}network-check"
PERIOD: Final = 300.0  # seconds; reference value
AGAIN: Final = ("dns", "ping")


class NetworkChecks:
    """A part of the machine. What is wrong is logged when it begins and when it has ended, not each time."""

    def __init__(self, around: Surroundings) -> None:
        self._environment = around.environment
        self._failing: Mapping[tuple[str, str], Finding] = {}
        self._log = structlog.get_logger(f"{ROOT}.network-checks")

    def nodes(self, document: MachineDocument) -> list[Node]:
        """One, if the machine is managed by a cloud; none for a cloud on this very computer, which needs no network."""
        host = cloud_host(document.cloud.app_address) if document.cloud is not None else ""
        if document.cloud is None or is_loopback_name(host):
            return []
        return [Node(NODE, partial(self._live, host), version=host)]

    async def _live(self, host: str, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
        targets = load(self._environment, cloud=host)
        task_status.started()
        self.note(await check(targets), ())
        while True:
            await trio.sleep(PERIOD)
            await self._again(targets)

    async def _again(self, targets: Targets) -> None:
        self.note(await check(targets, only=AGAIN), AGAIN)

    def note(self, findings: Sequence[Finding], only: Sequence[str]) -> None:
        """Log what is new; of checks that are not among `only` nothing is concluded."""
        before = {key: one for key, one in self._failing.items() if not only or key[0] in only}
        others = {key: one for key, one in self._failing.items() if key not in before}
        now = {(one.check, one.target): one for one in failures(findings)}
        for key in now.keys() - before.keys():
            one = now[key]
            self._log.warning("failed", check=one.check, target=one.target, reason=one.detail, remedy=one.remedy)
        for check_name, target in before.keys() - now.keys():
            self._log.info("works again", check=check_name, target=target)
        self._failing = {**others, **now}
