"""What every service of the cloud stands on, and how the rules of cloud.permissions guard its methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from cloud import audit
from cloud.access import Of, Place, Role, require
from cloud.authentication import CloudAuthenticator
from cloud.author import Author
from cloud.blobs import Blobs
from cloud.credentials import require_in_force
from cloud.data.query import Engine
from cloud.data.query_process import QueryProcesses
from cloud.homes import Homes
from cloud.links import Links
from cloud.openings import Openings
from cloud.permissions import Rule
from cloud.pieces import SMALL
from cloud.seen import Seen
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.times import Clock, now
from cloud.workroom import Workroom

if TYPE_CHECKING:
    from cloud.certificates.port import PortTls
    from rpc.api.target import CallInfo

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large uploads may be, in bytes: one file, one message with which a file may come whole, one package."""

    file: int = 4 * 1024**3
    message: int = 64 * 1024**2  # as rpc.limits.Limits.max_message
    package: int = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class Cloud:
    """What all calls share."""

    store: Store
    events: Events
    authenticator: CloudAuthenticator
    blobs: Blobs
    links: Links
    clock: Clock = now
    limits: Sizes = Sizes()
    openings: Openings = field(default_factory=Openings)
    room: Workroom = field(default_factory=Workroom)
    questions: Engine = field(default_factory=QueryProcesses)  # in SQL
    mails: bool = False  # whether there is a mail server for invitations
    tls: PortTls | None = None  # of its port; None for one in plain text
    seen: Seen = field(default_factory=Seen)
    homes: Homes = field(default_factory=Homes)


@dataclass(frozen=True, slots=True)
class _Change:
    """A call that changes something, as the audit log tells it."""

    action: str
    subject: str
    detail: Mapping[str, Any]


class Service:
    """One call of one caller. Methods are guarded by `guarded`; their transactions go through `read` and `write`."""

    def __init__(self, cloud: Cloud, author: Author) -> None:
        self.cloud = cloud
        self.author = author
        self.request: CallInfo | None = None  # of a call that came as an RPC
        self._place: Place | None = None  # where the caller was found to have a role
        self._change: _Change | None = None  # until it has been noted
        self._required: dict[tuple[Role, Of, str, bool], None] = {}  # what was asked of the caller
        self._due: Callable[[Sql], Place] | None = None  # what the first transaction begins with

    async def read(self, work: Callable[[Sql], T]) -> T:
        """As Store.read."""
        found = await self.cloud.store.read(self._begun(work))
        self._due = None
        return found

    async def write(self, work: Callable[[Sql], T]) -> T:
        """As Store.write. The first write of a call that changes something is noted in the audit log with it."""
        change, work = self._change, self._begun(work)
        if change is None:
            done = await self.cloud.store.write(work)
            self._due = None
            return done

        def noted(sql: Sql) -> T:
            found = work(sql)
            self._note(sql, change, audit.made(found))
            return found

        done = await self.cloud.store.write(noted)
        self._change = self._due = None
        return done

    def _begun(self, work: Callable[[Sql], T]) -> Callable[[Sql], T]:
        """`work` after what is due."""
        due = self._due
        if due is None:
            return work

        def begun(sql: Sql) -> T:
            self._place = due(sql)
            return work(sql)

        return begun

    def _note(self, sql: Sql, change: _Change, made: str) -> None:
        owner = self._place.organization if self._place is not None else audit.organization_of(sql, self.author)
        detail = {**change.detail, **({"made": made} if made and made != change.subject else {})}
        audit.note(sql, owner, self.author, change.action, change.subject or made, detail, self.now())

    async def aside(self, size: int, function: Callable[[], T]) -> T:
        """What `function` makes of `size` characters or bytes of a caller: in the cloud's room if they are many."""
        if size <= SMALL:
            return function()
        place, cloud = self._place, self.cloud
        organization = place.organization if place is not None else await cloud.homes.of(cloud.store, self.author)
        return await cloud.room.run(organization, function)

    def now(self) -> datetime:
        """The time of day."""
        return self.cloud.clock()

    def require(self, sql: Sql, role: Role, of: Of, subject: str, *, home: bool = False) -> Place:
        """For what a rule cannot say: a second thing that a method touches. As cloud.access.require."""
        place = require(sql, self.author, role, of, subject, home=home)
        self._place = self._place or place
        self._required[role, of, subject, home] = None
        return place

    def again(self, sql: Sql) -> None:
        """For a call that lasts: MachineError if the caller might not begin it now."""
        require_in_force(sql, self.author)
        for role, of, subject, home in self._required:
            require(sql, self.author, role, of, subject, home=home)


Guarded = TypeVar("Guarded", bound=type[Service])


def guarded(rules: Mapping[str, Rule]) -> Callable[[Guarded], Guarded]:
    """Put its rule before each public method. A method without a rule, or a rule without a method, is a TypeError.

    A method whose first word is one of audit.VERBS is noted in the audit log when it succeeds.
    """

    def decorate(cls: Guarded) -> Guarded:
        methods = {
            name: method
            for name, method in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_") and not hasattr(Service, name)
        }
        if different := methods.keys() ^ rules.keys():
            raise TypeError(f"{cls.__name__}: no rule, or no method: {', '.join(sorted(different))}")
        for name, rule in rules.items():
            if rule.of is not None or audit.is_change(name):
                setattr(cls, name, _guard(methods[name], rule))
        return cls

    return decorate


def _guard(method: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
    signature = inspect.signature(method)
    if rule.of is not None and rule.field not in signature.parameters:
        raise TypeError(f"{method.__name__} has no argument {rule.field}")
    change = audit.is_change(method.__name__)
    if rule.inside and (change or inspect.isasyncgenfunction(method)):
        raise TypeError(f"{method.__name__}: who calls is asked before a change, and before a stream")

    async def check(service: Service, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = dict(signature.bind(service, *args, **kwargs).arguments)
        given.pop("self", None)
        subject = given.pop(rule.field, "") if rule.field else ""
        called = ""
        of = rule.of
        if of is not None:

            def work(sql: Sql) -> tuple[Place, str]:
                place = require(sql, service.author, rule.role, of, subject, home=rule.home)
                return place, audit.label(sql, of, subject) if change else ""

            service._required[rule.role, of, subject, rule.home] = None
            if rule.inside:
                service._due = lambda sql: work(sql)[0]
            else:
                service._place, called = await service.read(work)
        if change:
            about = {"of": of.value} if of is not None else {}
            detail = {**about, **({"called": called} if called else {}), **audit.told(given)}
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
        if self._due is not None:
            raise RuntimeError(f"{method.__name__} has answered without a transaction: nobody asked who calls")
        if self._change is not None:  # it has written in a way of its own
            await self.write(lambda sql: None)
        return result

    return call
