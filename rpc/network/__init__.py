"""Listening sockets, network interfaces, TLS contexts and the multicast DNS codec.

Public, in the order in which to read them:

* `descriptors`: Limit of connections by available file descriptors
* `listeners`: Listening sockets for TCP addresses such as `localhost:8080`, `:8080` or `[::1]:8080`, and for Unix
  sockets
* `mdns` (module): Codec for multicast DNS messages (RFC 1035 4, RFC 6762, RFC 2782, RFC 6763 6), safe with hostile
  input
* `network_interfaces`: Network interfaces of this computer with their addresses, and notification of changes, using
  rtnetlink(7)
* `tls`: TLS contexts of servers and clients, and certificate renewal without closing connections
* `local`: A channel between programs of the same computer, for its owner: a Unix socket, on Windows a named pipe
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.network import mdns as mdns
    from rpc.network.descriptors import connections as connections
    from rpc.network.descriptors import raise_descriptors as raise_descriptors
    from rpc.network.listeners import HAS_UNIX_SOCKETS as HAS_UNIX_SOCKETS
    from rpc.network.listeners import names_of as names_of
    from rpc.network.listeners import only_loopback as only_loopback
    from rpc.network.listeners import open_listeners as open_listeners
    from rpc.network.listeners import open_unix_listener as open_unix_listener
    from rpc.network.listeners import parse_address as parse_address
    from rpc.network.local import PRIVILEGED as PRIVILEGED
    from rpc.network.local import open_local_listener as open_local_listener
    from rpc.network.local import open_local_stream as open_local_stream
    from rpc.network.network_interfaces import Address as Address
    from rpc.network.network_interfaces import Interface as Interface
    from rpc.network.network_interfaces import InterfaceChanges as InterfaceChanges
    from rpc.network.network_interfaces import interfaces as interfaces
    from rpc.network.network_interfaces import outward as outward
    from rpc.network.network_interfaces import watch_changes as watch_changes
    from rpc.network.tls import ALPN as ALPN
    from rpc.network.tls import MACHINE_AUTHORITY as MACHINE_AUTHORITY
    from rpc.network.tls import CertificateContext as CertificateContext
    from rpc.network.tls import InMemoryTls as InMemoryTls
    from rpc.network.tls import ServerTls as ServerTls
    from rpc.network.tls import TlsError as TlsError
    from rpc.network.tls import client_context as client_context
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "descriptors": ["connections", "raise_descriptors"],
            "listeners": [
                "HAS_UNIX_SOCKETS",
                "names_of",
                "only_loopback",
                "open_listeners",
                "open_unix_listener",
                "parse_address",
            ],
            "network_interfaces": [
                "Address",
                "Interface",
                "InterfaceChanges",
                "interfaces",
                "outward",
                "watch_changes",
            ],
            "tls": [
                "ALPN",
                "MACHINE_AUTHORITY",
                "CertificateContext",
                "InMemoryTls",
                "ServerTls",
                "TlsError",
                "client_context",
            ],
            "local": ["PRIVILEGED", "open_local_listener", "open_local_stream"],
        },
        modules=["mdns"],
    )
