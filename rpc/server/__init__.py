"""Server port and the services that every server provides.

Public, in the order in which to read them:

* `auth_service`: Serve the AuthService RPCs, which exchange credentials for a token
* `port`: Server port for gRPC, gRPC-Web, web pages and WebSockets over HTTP/1.1 and HTTP/2, with or without TLS
* `server_reflection`: Server reflection, v1 and v1alpha: lists services and returns message descriptors
* `standard`: Services that every server provides: authentication, reflection and health
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.server.auth_service import AuthRouter as AuthRouter
    from rpc.server.port import serve as serve
    from rpc.server.server_reflection import reflection as reflection
    from rpc.server.standard import AUTH as AUTH
    from rpc.server.standard import StandardServices as StandardServices
    from rpc.server.standard import http_and_json as http_and_json
    from rpc.server.standard import load_services as load_services
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "auth_service": ["AuthRouter"],
            "port": ["serve"],
            "server_reflection": ["reflection"],
            "standard": ["AUTH", "StandardServices", "http_and_json", "load_services"],
        },
    )
