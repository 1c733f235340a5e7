"""Network management as one task: it observes, decides, and applies, until it is cancelled."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio
from msgspec.structs import replace

from netmgr.applying.executor import Executor, Handlers
from netmgr.applying.kernel import KernelEffects
from netmgr.dns.resolver import Resolver
from netmgr.model.decision import NetworkDecision
from netmgr.model.facts import OWN, AddressLease, Manager
from netmgr.model.network import UsableNetwork
from netmgr.model.plan import (
    AddAddress,
    DeleteAddress,
    Effect,
    GiveBack,
    Join,
    Leave,
    SetCountry,
    SetDns,
    SetPowerSave,
    StartDhcp,
    StartHotspot,
    StopDhcp,
    StopHotspot,
)
from netmgr.model.settings import NetworkSettings
from netmgr.netlink.rfkill import Switches
from netmgr.netlink.route import Kernel
from netmgr.netlink.socket import NetlinkRequests
from netmgr.observation.board import FactsBoard
from netmgr.observation.kernel import Managers, follow_kernel, follow_switches, read_kernel
from netmgr.owners.detect import every_owner, owner_of
from netmgr.owners.network_manager import ignore
from netmgr.owners.owner import Owner
from netmgr.planning.desired import desired
from netmgr.planning.difference import difference
from netmgr.portal.backend import PortalActions
from netmgr.provisioning import trial
from netmgr.provisioning.states import (
    Event,
    JoinTarget,
    Kept,
    ProvisioningOutcome,
    ProvisioningState,
    ProvisioningWorld,
    kept,
    restored,
)
from netmgr.provisioning.step import step
from netmgr.service.addresses import AddressLeases
from netmgr.service.decisions import DecisionLog
from netmgr.service.proofs import Prober, ProofCloud
from netmgr.service.radios import Wifi
from netmgr.service.returned import Returned
from netmgr.service.tasks import Tasks
from netmgr.store.store import NetworkStore
from netmgr.store.stored import StoredNetworks, with_lease
from netmgr.wifi.process import can_be_unit, stop_units
from netmgr.wifi.supplicant import FOLDER, Supplicant
from schema import MachineError

MAX_ROUNDS: Final = 20
"""Plans that are applied one after the other without waiting for a change."""

_log = structlog.get_logger("netmgr")


class Inputs:
    """What the rest of the agent provides. All functions return at once.

    `settings` returns the settings, given the networks of the cloud that apply and those that other programs have;
    `cloud_networks` those of the configuration; `configured` whether there are credentials; `cloud` the cloud to ask;
    `reboot` restarts the computer.
    """

    def __init__(
        self,
        settings: Callable[[tuple[UsableNetwork, ...], tuple[UsableNetwork, ...]], NetworkSettings],
        cloud_networks: Callable[[], tuple[UsableNetwork, ...] | None],
        configured: Callable[[], bool],
        cloud: Callable[[], ProofCloud | None],
        reboot: Callable[[], Awaitable[None]],
        hostname: str,
    ) -> None:
        self.settings, self.cloud_networks, self.configured = settings, cloud_networks, configured
        self.cloud, self.reboot, self.hostname = cloud, reboot, hostname


class NetworkService:
    """Manages the network of the computer while `run` runs.

    `store` keeps what must survive a reboot, and `runtime`, below /run, what ends with one: takeovers, addresses and
    joined networks. With `separate`, wifi connections go on while no agent runs, and the next one continues with them.
    """

    def __init__(
        self,
        inputs: Inputs,
        store: NetworkStore,
        runtime: NetworkStore,
        run_blocking: Callable[..., Awaitable[Any]],
        *,
        separate: bool = False,
    ) -> None:
        self.board = FactsBoard()
        self.store, self._runtime = store, runtime
        self.outcome: ProvisioningOutcome | None = None
        self.settings = NetworkSettings(enabled=False)
        """The settings of the last decision."""
        self.backend: PortalActions
        self._inputs, self._run_blocking = inputs, run_blocking
        self._separate = separate and can_be_unit()
        self._inbox: deque[tuple[Callable[[StoredNetworks], StoredNetworks] | None, Event | None]] = deque()
        self._adopted: tuple[UsableNetwork, ...] = ()
        self._owners: Sequence[Owner] = every_owner(run_blocking)
        self._returned = Returned(self._owners)
        self._managers = Managers(self._manager_of)
        self._executor = Executor({})
        self._wifi: Wifi | None = None
        self._proof: trial.TrialProof | None = None
        self._state = ProvisioningState()
        self._decisions = DecisionLog()

    # ---- requests from outside; all return at once

    def post(self, event: Event) -> None:
        """Let the next decision consider an event."""
        self._inbox.append((None, event))
        self.board.poke()

    def enter(self, change: Callable[[StoredNetworks], StoredNetworks], event: Event | None = None) -> None:
        """Change the stored record before the next decision, and let it consider an event then."""
        self._inbox.append((change, event))
        self.board.poke()

    def poke(self) -> None:
        """Decide again: the settings, the credentials or the key of the cloud have changed."""
        self.board.poke()

    def scan(self) -> None:
        """Listen for networks now, if the radio can."""
        if self._wifi is not None:
            self._wifi.scan()

    @property
    def decision(self) -> NetworkDecision:
        """The last decision."""
        return self.outcome.decision if self.outcome is not None else NetworkDecision()

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps the network from being as it should be, for people."""
        failed = (
            f"{type(entry.effect).__name__} {entry.effect.interface}: {entry.reason}"
            for entry in self._executor.failures()
        )
        result = self.store.stored.trial.result
        given_up = trial.TEXTS[result] if result in (trial.TrialResult.REVERTED, trial.TrialResult.INTERRUPTED) else ""
        return (*failed, *filter(None, (self.store.problem, given_up)))

    # ---- the task

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled; `started` after the first look at the network. Raises MachineError if that fails."""
        self.board.clear()
        await self.store.load()
        await self._runtime.load()
        with NetlinkRequests() as requests, Switches() as switches:
            kernel = Kernel(requests)
            async with trio.open_nursery() as nursery:
                tasks = Tasks(nursery)
                wifi = self._wifi = Wifi(
                    self.board, kernel, switches, tasks, self.post, self._saves_power, self._ignored, self.backend,
                    partial(Supplicant, separate=self._separate),
                )  # fmt: skip
                await nursery.start(follow_kernel, self.board, kernel, self._managers)
                leases = AddressLeases(self.board, tasks, self._inputs.hostname, self._remembered, self._remember)
                await self._resume(wifi, leases)
                tasks.start("switches", partial(follow_switches, self.board, switches))
                tasks.start("radios", wifi.follow)
                tasks.start("scans", wifi.scan_regularly)
                tasks.start("proofs", Prober(self.board, self._inputs.cloud, self._proved).run)
                self._executor = Executor(self._handlers(kernel, switches, leases, wifi))
                await self._adopt()
                task_status.started()
                await self._decide(kernel)

    def _handlers(self, kernel: Kernel, switches: Switches, leases: AddressLeases, wifi: Wifi) -> Handlers:
        effects = KernelEffects(
            self.board, kernel, switches, self._owners,
            lambda name: self._runtime.stored.managers.get(name, ""), self._own, self._managers.forget,
        )  # fmt: skip
        resolver = Resolver(self._run_blocking)

        async def set_names(effect: SetDns) -> None:
            await resolver.set(effect.servers, effect.domains)
            self.board.put(resolvers=effect.servers, domains=effect.domains)

        _log.info("network management runs", taken_over=sorted(self._runtime.stored.managers))
        handlers = effects.handlers()
        return {
            **handlers,
            AddAddress: partial(self._add_address, handlers[AddAddress]),
            DeleteAddress: partial(self._delete_address, handlers[DeleteAddress]),
            GiveBack: partial(self._give_back, handlers[GiveBack], wifi),
            Join: wifi.join,
            Leave: wifi.leave,
            SetCountry: wifi.set_country,
            SetPowerSave: wifi.set_power_save,
            StartHotspot: wifi.start_hotspot,
            StopHotspot: wifi.stop_hotspot,
            StartDhcp: leases.start,
            StopDhcp: leases.stop,
            SetDns: set_names,
        }

    async def _decide(self, kernel: Kernel) -> None:
        now = trio.current_time()
        resumed = {name: JoinTarget(label=label, since=now) for name, label in self.board.facts().joining.items()}
        self._state = replace(restored(self.store.stored.kept, now), targets=resumed)
        await self._change_trial(lambda record: trial.restarted(record, now))
        while True:
            changed, wake = self.board.changed, float("inf")
            effects: tuple[Effect, ...] = ()
            for _ in range(MAX_ROUNDS):
                changed, before = self.board.changed, effects
                wake, effects = await self._round()
                if effects and effects != before and not self._executor.failures():
                    await read_kernel(self.board, kernel, self._managers)
                elif not self._inbox:
                    break
            with trio.move_on_at(min(wake, self._executor.next_attempt(), self._trial_ends())):
                await changed.wait()

    async def _round(self) -> tuple[float, tuple[Effect, ...]]:
        """Decide once, and apply. Return the time of the next decision that is needed anyway, and the effects."""
        change, event = self._inbox.popleft() if self._inbox else (None, None)
        if change is not None:
            await self.store.change(change)
        await self._advance_trial()
        facts = self.board.facts()
        again = await self._returned.take_again(facts, self._runtime.stored.managers)
        self.settings = self._inputs.settings(trial.applied(self.store.stored.trial), self._adopted)
        world = ProvisioningWorld(settings=self.settings, facts=facts, configured=self._inputs.configured())
        outcome = self.outcome = step(self._state, world, event, facts.now)
        for reason in outcome.reasons:
            _log.info("provisioning", mode=outcome.state.mode.value, reason=reason)
            self.board.poke()
        if kept(outcome.state) != kept(self._state):
            await self.store.change(partial(_with_kept, kept=kept(outcome.state)))
        self._state = outcome.state
        if outcome.reboot:
            _log.warning("the device reboots, because it is offline", reboots=outcome.state.reboots)
            await self._inputs.reboot()
        plan = desired(self.settings, facts, outcome.decision)
        effects = difference(facts, plan, frozenset(self._runtime.stored.addresses))
        self._decisions.note(outcome, event, effects, configured=world.configured)
        await self._executor.apply(effects)
        await self._record_joined()
        return min(outcome.wake, again), effects

    # ---- connections that go on while no agent runs

    async def _resume(self, wifi: Wifi, leases: AddressLeases) -> None:
        """Continue with the connections of the agent that ran before."""
        stored = self._runtime.stored
        if self._separate and not stored.managers:
            await stop_units(FOLDER)
        for name in stored.managers:
            if name in stored.joined:
                await wifi.resume(name, stored.joined[name])
            leases.resume(name)

    async def _record_joined(self) -> None:
        facts = self.board.facts()
        joined = {name: network for name, network in facts.clients.items() if name in facts.associations}
        if self._separate and joined != self._runtime.stored.joined:
            await self._runtime.change(lambda stored: replace(stored, joined=joined))

    async def _give_back(self, handler: Callable[[Any], Awaitable[None]], wifi: Wifi, effect: GiveBack) -> None:
        await wifi.give_back(effect.interface)
        await handler(effect)

    # ---- trials of changed networks

    async def _advance_trial(self) -> None:
        networks, facts = self._inputs.cloud_networks(), self.board.facts()
        proof, self._proof = self._proof, None
        if networks is not None:
            await self._change_trial(lambda record: trial.offer(record, networks, facts))
        await self._change_trial(lambda record: trial.advance(record, proof, facts))

    async def _change_trial(self, function: Callable[[trial.TrialRecord], trial.TrialRecord]) -> None:
        before = self.store.stored.trial
        after = function(before)
        if after != before:
            await self.store.change(lambda stored: replace(stored, trial=after))
            if after.result is not None and after.result != before.result:
                _log.info(
                    "the networks of the configuration", result=after.result.value, text=trial.TEXTS[after.result]
                )

    def _trial_ends(self) -> float:
        end = trial.wake_at(self.store.stored.trial)
        return float("inf") if end is None else end

    def _proved(self, proof: trial.TrialProof) -> None:
        self._proof = proof
        self.board.poke()

    # ---- takeovers, addresses and leases

    async def _manager_of(self, interface: str) -> Manager:
        if interface in self._runtime.stored.managers:
            return OWN
        owner = await owner_of(interface, self._owners)
        return owner.name if owner is not None else ""

    async def _own(self, interface: str, manager: Manager | None) -> None:
        """Record a takeover, after the networks of the former manager are known; None records its end."""
        if manager:
            await self._adopt()
        managers = {name: entry for name, entry in self._runtime.stored.managers.items() if name != interface}
        if manager is not None:
            managers[interface] = manager
        await self._runtime.change(lambda stored: replace(stored, managers=managers))

    async def _adopt(self) -> None:
        """Read the networks of other programs for the interfaces of this computer."""
        networks: dict[str, UsableNetwork] = {}
        for link in self.board.facts().links:
            if link.kind == "other":
                continue
            for owner in self._owners:
                try:
                    networks |= {network.label: network for network in await owner.networks(link.name)}
                except MachineError as error:
                    _log.debug("networks of another program cannot be read", program=owner.name, reason=str(error))
        self._adopted = tuple(networks.values())

    async def _add_address(self, handler: Callable[[Any], Awaitable[None]], effect: AddAddress) -> None:
        entry = (effect.interface, effect.address)
        if entry not in self._runtime.stored.addresses:
            await self._runtime.change(lambda stored: replace(stored, addresses=(*stored.addresses, entry)))
        await handler(effect)

    async def _delete_address(self, handler: Callable[[Any], Awaitable[None]], effect: DeleteAddress) -> None:
        await handler(effect)
        entry = (effect.interface, effect.address)
        rest = tuple(other for other in self._runtime.stored.addresses if other != entry)
        await self._runtime.change(lambda stored: replace(stored, addresses=rest))

    def _remembered(self, interface: str, ssid: bytes) -> AddressLease | None:
        return self.store.stored.lease(interface, ssid)

    def _remember(self, interface: str, ssid: bytes, lease: AddressLease) -> None:
        """Keep a lease, unless only its times are new: flash memory wears out."""
        before = self.store.stored.lease(interface, ssid)
        if before is None or (before.address, before.server) != (lease.address, lease.server):
            self.enter(partial(_with_lease, lease=(interface, ssid, lease)))

    async def _ignored(self, interface: str) -> None:
        try:
            await ignore(interface, self._run_blocking)
        except MachineError as error:
            _log.debug("NetworkManager cannot be asked to leave an interface alone", reason=str(error))

    def _saves_power(self, interface: str, on: bool) -> None:
        self._managers.power_save[interface] = on
        self._managers.forget(interface)


def _with_lease(stored: StoredNetworks, *, lease: tuple[str, bytes, AddressLease]) -> StoredNetworks:
    return with_lease(stored, *lease)


def _with_kept(stored: StoredNetworks, *, kept: Kept) -> StoredNetworks:
    return replace(stored, kept=kept)


def stores_of(state: Path, run: Path, run_blocking: Callable[..., Awaitable[Any]]) -> tuple[NetworkStore, NetworkStore]:
    """Return the stores below the folders of the agent."""
    return NetworkStore(state / "network.json", run_blocking), NetworkStore(run / "network.json", run_blocking)
