"""The connection of a command to a machine of the cloud: directly if that is quick and safe, else through the cloud."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click
import trio
from grpclib.exceptions import GRPCError

from command.cloud import login as cloud_login
from command.connection import Unreachable, tls_context, unreachable
from rpc.api import ApiClient
from rpc.client import ApiKey, Channel
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from command.connection import Connection

DIRECT_LIMIT: Final = 0.5  # seconds for a machine to answer directly
PART: Final = "machine-part"
"""Metadata key of the cloud: the part that is called."""


@asynccontextmanager
async def open_through(connection: Connection) -> AsyncIterator[ApiClient]:
    """Provide a client of the machine `connection.through`, explanation in the cloud that the user has logged in to.

    Raises MachineError or Unreachable; click.ClickException if the cloud has no such machine.
    """
    from command.cloud.group import current, find

    login = cloud_login.load(os.environ).connection()
    credentials = ApiKey(login.api_key_id, login.api_key)
    try:
        cloud = Channel(login.address, tls=tls_context(login), credentials=credentials)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    async with cloud:
        try:
            client = ApiClient(cloud)
            part = await find(client, connection.through)
            reported = (await current(client, part))["part"]
        except MachineError as error:
            if error.kind is ErrorKind.UNAVAILABLE and not cloud.statistics.connections:
                raise Unreachable(unreachable(login, error.message)) from None
            raise
        async with _directly(login, reported) as direct:
            yield ApiClient(direct) if direct is not None else ApiClient(cloud, metadata={PART: part.id})


@asynccontextmanager
async def _directly(login: Connection, part: Mapping[str, Any]) -> AsyncIterator[Channel | None]:
    """Provide a channel to the machine itself; None if it does not answer at once, or cannot prove which part it is.

    Addresses of private networks belong to other machines elsewhere, which may even be of the same organization. The
    certificate must therefore contain the name of this part, whatever the address is.
    """
    address = direct_address(part)
    context = await machines_context(login) if address else None
    if context is None:
        yield None
        return
    connect = partial(dial, address, context, str(part["dns_name"]))
    credentials = ApiKey(login.api_key_id, login.api_key)
    async with Channel(f"https://{address}", credentials=credentials, connect=connect) as channel:
        answered = False
        with trio.move_on_after(DIRECT_LIMIT):
            try:
                await channel.connection()
                answered = True
            except GRPCError:
                pass
        yield channel if answered else None


def direct_address(part: Mapping[str, Any]) -> str:
    """Return the IP address and port at which a machine has reported to listen; "" if there is none to try.

    An address of this computer is never the machine's, unless both are the same computer, where nothing is gained.
    """
    for text in (str(part.get("fqdn") or ""), str(part.get("local_fqdn") or "")):
        host, _, port = text.rpartition(":")
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            continue
        if port.isdigit() and not address.is_loopback and not address.is_unspecified:
            return text
    return ""


async def machines_context(login: Connection) -> ssl.SSLContext | None:
    """Return a TLS context that trusts only the cloud's authorities of machines; None if it has none."""
    if not login.address.startswith("https://"):
        return None  # a cloud without TLS issues no certificates
    from command.cloud.http import get
    from rpc.network import ALPN

    try:
        status, content = await get("/ca.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=content.decode())
    except (MachineError, Unreachable, ssl.SSLError, ValueError):
        return None
    context.set_alpn_protocols(ALPN)
    return context if status == 200 else None


async def dial(address: str, context: ssl.SSLContext, name: str) -> trio.abc.Stream:
    """Connect to `address` with TLS; the certificate must be valid for `name`."""
    host, _, port = address.rpartition(":")
    stream = await trio.open_tcp_stream(host.strip("[]"), int(port))
    secure = trio.SSLStream(stream, context, server_hostname=name, https_compatible=True)
    try:
        await secure.do_handshake()
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return secure
