"""gRPC calls over WebRTC data channels: the envelopes of proto.rpc.webrtc.v1, a server and a client.

Public, in the order in which to read them:

* `client`: Client side of calls over a data channel, for generated stubs and `rpc.api.client.ApiClient`
* `clients`: Clients of a machine that connect by WebRTC: answers their offers, and serves their calls until they leave
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.datachannel.client import CallChannel as CallChannel
    from rpc.datachannel.clients import MAX_CONNECTIONS as MAX_CONNECTIONS
    from rpc.datachannel.clients import Clients as Clients
    from rpc.datachannel.clients import Door as Door
    from rpc.datachannel.clients import Responder as Responder
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "client": ["CallChannel"],
            "clients": ["MAX_CONNECTIONS", "Clients", "Door", "Responder"],
        },
    )
