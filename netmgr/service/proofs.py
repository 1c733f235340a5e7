"""Proofs that the cloud answers through an interface, after each change of the network and from time to time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio

from netmgr.connectivity.probe import ConnectivityProof, ConnectivityVerdict, prove
from netmgr.model.events import JoinFailure
from netmgr.model.facts import NetworkFacts
from netmgr.observation.board import FactsBoard
from netmgr.provisioning import trial

LIMIT: Final = 20.0
"""Seconds for a proof through an interface."""
AGAIN: Final = 15.0
"""Seconds until the next proof after one that has failed."""
PERIOD: Final = 300.0
"""Seconds between two proofs that succeed."""
SETTLE: Final = 1.0
"""Seconds after a change of addresses or routes until the cloud is asked: routes and name servers change together."""
FAILURES: Final = {
    ConnectivityVerdict.OTHER: JoinFailure.PORTAL,
    ConnectivityVerdict.NO_NAME: JoinFailure.NO_NAME,
    ConnectivityVerdict.NO_ANSWER: JoinFailure.NO_INTERNET,
}
"""What a verdict says about a network."""

_log = structlog.get_logger("netmgr.connectivity")


@dataclass(frozen=True, slots=True)
class ProofCloud:
    """Cloud that is asked. `key` is a secret."""

    url: str
    part: str
    key: str = field(repr=False)


class Prober:
    """Asks the cloud through each interface with a default route. `cloud` returns None while there is none to ask."""

    def __init__(
        self, board: FactsBoard, cloud: Callable[[], ProofCloud | None], proved: Callable[[trial.TrialProof], None]
    ) -> None:
        self._board, self._cloud, self._proved = board, cloud, proved
        self._reasons: dict[str, str] = {}

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            changed = self._board.changed
            facts, cloud = self._board.facts(), self._cloud()
            names = connected(facts)
            failed = False
            if cloud is not None:
                for name in names:
                    failed |= not await self._ask(cloud, name)
            elif any(name for name in self._board.facts().cloud):
                self._board.put(cloud={name: good for name, good in facts.cloud.items() if not name}, unproved={})
            facts = self._board.facts()
            self._board.put(
                cloud={name: good for name, good in facts.cloud.items() if name in (*names, "")},
                unproved={name: failure for name, failure in facts.unproved.items() if name in names},
            )
            with trio.move_on_after(AGAIN if failed or cloud is None else PERIOD):
                while connected(self._board.facts()) == names and self._cloud() == cloud:
                    await changed.wait()
                    changed = self._board.changed
            await trio.sleep(SETTLE)

    async def _ask(self, cloud: ProofCloud, name: str) -> bool:
        asked = trio.current_time()
        proof = ConnectivityProof(ConnectivityVerdict.NO_ANSWER, "no answer in time")
        with trio.move_on_after(LIMIT):
            proof = await prove(cloud.url, cloud.part, cloud.key, interface=name)
        good = proof.verdict is ConnectivityVerdict.CLOUD
        reason = "" if good else f"{proof.verdict.value}: {proof.detail}"
        if reason != self._reasons.get(name, ""):
            _log.info("the cloud answers" if good else "the cloud does not answer", interface=name, reason=reason)
        self._reasons[name] = reason
        self._board.put_for("unproved", name, FAILURES.get(proof.verdict))
        self._board.put_for("cloud", name, good)
        if good:
            self._proved(trial.TrialProof(interface=name, asked=asked))
        return good


def connected(facts: NetworkFacts) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each interface with a default route, by name."""
    names = {route.interface for route in facts.routes if route.destination.prefixlen == 0}
    return {
        link.name: tuple(sorted(str(address.value) for address in link.addresses if not address.value.is_link_local))
        for link in facts.links
        if link.name in names and link.carrier and link.kind != "other"
    }
