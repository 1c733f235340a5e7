"""What every service of the cloud stands on, and the rule that guards each of its methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from cloud.access import Of, Place, Role, require
from cloud.authentication import CloudAuthenticator
from cloud.author import Author
from cloud.blobs import Blobs
from cloud.links import Links
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.times import Clock, now

T = TypeVar("T")

PACKAGE_BYTES: Final = 512 * 1024 * 1024
"""Bytes of an archive that the registry takes, unless the command line says otherwise."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large uploads may be, in bytes: one file, and one message with which a file may come whole."""

    file: int = 4 * 1024**3
    message: int = 64 * 1024**2  # as rpc.limits.Limits.max_message


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
    package_bytes: int = PACKAGE_BYTES


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may call a method: `role` at what the argument `field` names. Without `of`, whoever is signed in may."""

    role: Role = Role.NOBODY
    of: Of | None = None
    field: str = ""


SELF: Final = Rule()
"""Whoever is signed in: the method shows only what the caller may see, or asks `require` itself."""


def owner(of: Of, field: str) -> Rule:
    """Owners only."""
    return Rule(Role.OWNER, of, field)


def operator(of: Of, field: str) -> Rule:
    """Operators and owners."""
    return Rule(Role.OPERATOR, of, field)


class Service:
    """One call of one caller. Methods are guarded by `guarded`; their transactions go through `read` and `write`."""

    def __init__(self, cloud: Cloud, author: Author) -> None:
        self.cloud = cloud
        self.author = author

    async def read(self, work: Callable[[Sql], T]) -> T:
        """As Store.read."""
        return await self.cloud.store.read(work)

    async def write(self, work: Callable[[Sql], T]) -> T:
        """As Store.write."""
        return await self.cloud.store.write(work)

    def now(self) -> datetime:
        """The time of day."""
        return self.cloud.clock()

    def require(self, sql: Sql, role: Role, of: Of, subject: str) -> Place:
        """For what a rule cannot say: a second thing that a method touches. As cloud.access.require."""
        return require(sql, self.author, role, of, subject)


Guarded = TypeVar("Guarded", bound=type[Service])


def guarded(rules: Mapping[str, Rule]) -> Callable[[Guarded], Guarded]:
    """Put its rule before each public method. A method without a rule, or a rule without a method, is a TypeError."""

    def decorate(cls: Guarded) -> Guarded:
        methods = {
            name: method
            for name, method in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith("_") and not hasattr(Service, name)
        }
        if different := methods.keys() ^ rules.keys():
            raise TypeError(f"{cls.__name__}: no rule, or no method: {', '.join(sorted(different))}")
        for name, rule in rules.items():
            if rule.of is not None:
                setattr(cls, name, _guard(methods[name], rule, rule.of))
        return cls

    return decorate


def _guard(method: Callable[..., Any], rule: Rule, of: Of) -> Callable[..., Any]:
    signature = inspect.signature(method)
    if rule.field not in signature.parameters:
        raise TypeError(f"{method.__name__} has no argument {rule.field}")

    async def check(service: Service, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        subject = signature.bind(service, *args, **kwargs).arguments.get(rule.field, "")
        await service.read(lambda sql: require(sql, service.author, rule.role, of, subject))

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
        return await method(self, *args, **kwargs)

    return call
