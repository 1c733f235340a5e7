"""gRPC, gRPC-Web, web pages and WebSockets on Trio: server port and client channel of a machine.

Public, in the order in which to read them:

* `limits`: Limits that a server or client of this package enforces on its peer
* `parsing`: Incremental parsing of messages that are too large for one step of the event loop
* `peer_timeouts`: Peer timeouts that tolerate a stopped or starved process
* `statistics`: Counters of a server or client since its start: plain integers, read by telemetry and never reset
* `status`: Mapping between the error kinds of this project, gRPC status codes and HTTP status codes
* `carrier`: Interface between a call and the transport that carries it, and the identity of the peer
* `metadata` (module): Header field encoding of metadata, timeouts and error details
* `server_call`: Server side of one call: the stream passed to a service method, and the task that runs it
* `call`: Server side of calls for any carrier: state shared by the connections of a server, and acceptance of requests
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc import metadata as metadata
    from rpc.call import Fallback as Fallback
    from rpc.call import Route as Route
    from rpc.call import Router as Router
    from rpc.call import ServerCore as ServerCore
    from rpc.carrier import CallConnection as CallConnection
    from rpc.carrier import Farewell as Farewell
    from rpc.carrier import Headers as Headers
    from rpc.carrier import HttpExchange as HttpExchange
    from rpc.carrier import Identity as Identity
    from rpc.carrier import MutableHeaders as MutableHeaders
    from rpc.carrier import Peer as Peer
    from rpc.limits import MIB as MIB
    from rpc.limits import Limits as Limits
    from rpc.parsing import one_by_one as one_by_one
    from rpc.parsing import too_deep as too_deep
    from rpc.peer_timeouts import silence as silence
    from rpc.peer_timeouts import was_suspended as was_suspended
    from rpc.peer_timeouts import within as within
    from rpc.server_call import ServerCall as ServerCall
    from rpc.statistics import Statistics as Statistics
    from rpc.status import to_machine_error as to_machine_error
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "limits": ["MIB", "Limits"],
            "parsing": ["one_by_one", "too_deep"],
            "peer_timeouts": ["silence", "was_suspended", "within"],
            "statistics": ["Statistics"],
            "status": ["to_machine_error"],
            "carrier": ["CallConnection", "Farewell", "Headers", "HttpExchange", "Identity", "MutableHeaders", "Peer"],
            "server_call": ["ServerCall"],
            "call": ["Fallback", "Route", "Router", "ServerCore"],
        },
        modules=["metadata"],
    )
