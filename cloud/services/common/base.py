"""Base class of all services, and the guard that checks the rules of their methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cloud.blobs import Blobs
from cloud.documents.pieces import SMALL
from cloud.domain.data.segments.contents import SegmentContents
from cloud.domain.data.segments.reading import Files, Readings, ScopeOf
from cloud.domain.data.segments.sealing import Transactions
from cloud.domain.fleet.seen import Seen
from cloud.domain.machines.hosts import MachineHosts
from cloud.domain.machines.ice import IceServers
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind, Place, Role, require
from cloud.domain.permissions.authentication import CloudAuthenticator
from cloud.domain.permissions.credentials import require_in_force
from cloud.domain.permissions.homes import Homes
from cloud.domain.permissions.links import Links
from cloud.domain.permissions.rules import AccessRule, rule_of
from cloud.domain.queries.query import Engine
from cloud.domain.queries.query_process import QueryProcesses
from cloud.domain.training.abilities import Abilities
from cloud.domain.triggering.upload_groups import UploadGroups
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.values.author import Author
from cloud.values.times import Clock, now
from cloud.work.checks import Checks
from cloud.work.openings import Openings
from cloud.work.reverse import Reverses
from cloud.work.workroom import Workroom

if TYPE_CHECKING:
    from cloud.domain.certificates.port import PortTls
    from rpc.api import CallInfo

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Limits of uploads in bytes: a file, a message (which may hold a whole file), and a package."""

    file: int = 4 * 1024**3
    message: int = 64 * 1024**2  # same as rpc.limits.Limits.max_message
    package: int = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class Cloud:
    """Objects and settings that all calls share."""

    store: Store
    events: Events
    authenticator: CloudAuthenticator
    blobs: Blobs
    links: Links
    clock: Clock = now
    limits: UploadLimits = UploadLimits()
    openings: Openings = field(default_factory=Openings)
    checks: Checks = field(default_factory=Checks)
    reverses: Reverses = field(default_factory=Reverses)
    replica_address: str = ""  # URL at which machines reach this replica; "" if it is the only one
    room: Workroom = field(default_factory=Workroom)
    queries: Engine = field(default_factory=QueryProcesses)  # answers queries in SQL
    mails: bool = False  # whether a mail server for invitations is configured
    tls: PortTls | None = None  # TLS of the port; None for plain text
    seen: Seen = field(default_factory=Seen)
    homes: Homes = field(default_factory=Homes)
    hosts: MachineHosts = field(default_factory=MachineHosts)
    ice: IceServers = field(default_factory=IceServers)
    training: Abilities = field(default_factory=Abilities)
    contents: SegmentContents = field(default_factory=SegmentContents)  # of segments, the last ones read
    uploads: UploadGroups = field(default_factory=UploadGroups)

    def segment_files(self, organization: str) -> Files:
        """Return what is needed to read segments for an organization, which takes its turn in the workroom."""
        return Files(self.blobs, self.contents, partial(self.room.run, organization))

    def readings(self, transactions: Transactions, scope: ScopeOf, organization: str) -> Readings:
        """Return the readings in a scope, which are read for an organization in transactions of a call."""
        return Readings(transactions, self.segment_files(organization), scope)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change, for the audit log."""

    action: str
    subject: str
    detail: Mapping[str, Any]


class Service:
    """A call of a caller, and the transactions of its methods. `guarded` checks the permissions of the methods.

    Usually a rule is checked in a transaction before the method. A method whose rule has `inside` is called often, and
    checks it in its own first transaction, by `read_checked` or `write_checked`. A method whose first word is in
    `audit.VERBS` writes by `change`. RuntimeError for a call of `read` or `write` in place of these.
    """

    rules: ClassVar[Mapping[str, AccessRule]] = {}
    """Rules of the methods by name; `guarded` sets them."""

    def __init__(self, cloud: Cloud, author: Author) -> None:
        if "rules" not in vars(type(self)):
            raise TypeError(f"the methods of {type(self).__name__} are not checked: decorate it with `guarded`")
        self.cloud = cloud
        self.author = author
        self.request: CallInfo | None = None  # set for a call that arrived as an RPC
        self._place: Place | None = None  # place where the caller has the required role
        self._change: _Change | None = None  # what `change` has to record; None if nothing, or after it was recorded
        self._recorded: dict[str, str | int] = {}  # what methods add to the entry of `_change`
        self._required: dict[tuple[Role, ObjectKind, str, bool], None] = {}  # roles that were required, for `again`
        self._unchecked: Callable[[Sql], Place] | None = None  # the check that `read_checked` or `write_checked` makes

    async def read(self, work: Callable[[Sql], T]) -> T:
        """Run a read-only transaction; its contract is that of `Store.read`."""
        self._require_checked()
        return await self.cloud.store.read(work)

    async def read_checked(self, work: Callable[[Sql], T]) -> T:
        """Check the rule of the method and run `work`, in one read-only transaction: for rules with `inside`."""
        return await self._with_check(self.cloud.store.read, work)

    async def write(self, work: Callable[[Sql], T]) -> T:
        """Run a write transaction that the audit log does not record; its contract is that of `Store.write`."""
        self._require_checked()
        if self._change is not None:
            raise RuntimeError(f"{self._change.action} is recorded in the audit log: call `change` instead of `write`")
        return await self.cloud.store.write(work)

    async def write_checked(self, work: Callable[[Sql], T]) -> T:
        """Check the rule of the method and run `work`, in one write transaction: for rules with `inside`."""
        return await self._with_check(self.cloud.store.write, work)

    async def change(self, work: Callable[[Sql], T]) -> T:
        """Run a write transaction. If it is the first of the call, it also records the call in the audit log."""
        self._require_checked()
        change = self._change
        if change is None:
            return await self.cloud.store.write(work)

        def work_and_note(sql: Sql) -> T:
            result = work(sql)
            self._note(sql, change, audit.created_id(result))
            return result

        done = await self.cloud.store.write(work_and_note)
        self._change = None
        return done

    def record(self, **detail: str | int) -> None:
        """Add to what the audit log records of this call, from a transaction of `change`, which may be retried."""
        self._recorded |= detail

    async def _with_check(
        self, transaction: Callable[[Callable[[Sql], T]], Awaitable[T]], work: Callable[[Sql], T]
    ) -> T:
        check = self._unchecked
        if check is None:
            raise RuntimeError("the permissions were checked before: call `read` or `write`")

        def check_and_work(sql: Sql) -> T:
            self._place = check(sql)
            return work(sql)

        done = await transaction(check_and_work)
        self._unchecked = None
        return done

    def _require_checked(self) -> None:
        if self._unchecked is not None:
            raise RuntimeError("the permissions are not checked yet: call `read_checked` or `write_checked`")

    def _note(self, sql: Sql, change: _Change, created: str) -> None:
        owner = self._place.organization if self._place is not None else audit.organization_of(sql, self.author)
        detail = {
            **change.detail,
            **self._recorded,
            **({"made": created} if created and created != change.subject else {}),
        }
        audit.note(sql, owner, self.author, change.action, change.subject or created, detail, self.now())

    async def offload(self, size: int, function: Callable[[], T]) -> T:
        """Run `function` on `size` characters or bytes of input, in the workroom if large, and return its result."""
        if size <= SMALL:
            return function()
        return await self.cloud.room.run(await self.organization(), function)

    async def organization(self) -> str:
        """Return the organization whose turn in the workroom the call takes."""
        place, cloud = self._place, self.cloud
        return place.organization if place is not None else await cloud.homes.of(cloud.store, self.author)

    def now(self) -> datetime:
        """Return the current time."""
        return self.cloud.clock()

    def require(self, sql: Sql, role: Role, of: ObjectKind, subject: str, *, home: bool = False) -> Place:
        """Require a role for an additional object of a method, which a rule cannot express. See `access.require`."""
        place = require(sql, self.author, role, of, subject, home=home)
        self._place = self._place or place
        self._required[role, of, subject, home] = None
        return place

    def again(self, sql: Sql) -> None:
        """Repeat the permission checks of a long-running call; MachineError if the caller may no longer make it."""
        require_in_force(sql, self.author)
        for role, of, subject, home in self._required:
            require(sql, self.author, role, of, subject, home=home)


Guarded = TypeVar("Guarded", bound=type[Service])


def guarded(cls: Guarded) -> Guarded:
    """Check the rule of each public method of a service before the method runs: the one that `allow` has given to it.

    Raises TypeError for a method without a rule, and for any other public attribute: a property or a static method
    cannot be checked. Successful calls of methods whose first word is in audit.VERBS are recorded in the audit log.
    """
    methods: dict[str, Callable[..., Any]] = {}
    for base in cls.__mro__:
        for name, method in vars(base).items():
            if not name.startswith("_") and not hasattr(Service, name):
                methods.setdefault(name, method)
    if unruled := [name for name, method in methods.items() if not inspect.isfunction(method) or not rule_of(method)]:
        raise TypeError(f"{cls.__name__}: methods without a rule: {', '.join(unruled)}: decorate them with `allow`")
    cls.rules = {name: rule for name, method in methods.items() if (rule := rule_of(method)) is not None}
    for name, rule in cls.rules.items():
        if rule.of is not None or audit.is_change(name):
            setattr(cls, name, _guard(methods[name], rule))
    return cls


def _guard(method: Callable[..., Any], rule: AccessRule) -> Callable[..., Any]:
    signature = inspect.signature(method)
    if rule.of is not None and rule.field not in signature.parameters:
        raise TypeError(f"{method.__name__} has no argument {rule.field}")
    change = audit.is_change(method.__name__)
    if rule.inside and (change or inspect.isasyncgenfunction(method)):
        raise TypeError(f"{method.__name__}: permissions must be checked before a change and before a stream")

    async def check(service: Service, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        arguments = dict(signature.bind(service, *args, **kwargs).arguments)
        arguments.pop("self", None)
        subject = arguments.pop(rule.field, "") if rule.field else ""
        called = ""
        of = rule.of
        if of is not None:

            def work(sql: Sql) -> tuple[Place, str]:
                place = require(sql, service.author, rule.role, of, subject, home=rule.home)
                return place, audit.label(sql, of, subject) if change else ""

            service._required[rule.role, of, subject, rule.home] = None
            if rule.inside:
                service._unchecked = lambda sql: work(sql)[0]
            else:
                service._place, called = await service.read(work)
        if change:
            about = {"of": of.value} if of is not None else {}
            detail = {**about, **({"called": called} if called else {}), **audit.loggable(arguments)}
            service._change = _Change(method.__name__, subject, detail)

    if inspect.isasyncgenfunction(method):

        @functools.wraps(method)
        async def stream(self: Service, *args: Any, **kwargs: Any) -> Any:
            await check(self, args, kwargs)
            async with aclosing(method(self, *args, **kwargs)) as items:
                async for item in items:
                    yield item

        return stream

    @functools.wraps(method)
    async def call(self: Service, *args: Any, **kwargs: Any) -> Any:
        await check(self, args, kwargs)
        result = await method(self, *args, **kwargs)
        if self._unchecked is not None:
            raise RuntimeError(f"{method.__name__} returned without a transaction, so permissions were not checked")
        if self._change is not None:  # the method changed nothing in the database, or in transactions of others
            await self.change(lambda sql: None)
        return result

    return call
