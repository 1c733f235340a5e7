"""Adapter between Python classes and the published protobuf API, driven by protobuf descriptors.

`rpc.api.server.router` serves APIs, `rpc.api.client` calls them, and `rpc.api.messages` loads the messages. All parts
are loaded on first use.

Public, in the order in which to read them:

* `cloud_v1`: Protobuf package `machine.cloud.v1`: calls of machine-cloud that are not part of the published API
* `convert.fit`: Error for a value that cannot be converted: what was expected, the value, and the path to it
* `convert.hints`: Type hints in the form used by the converters: optional or not, a sequence, a mapping or a class
* `convert.names`: Conversion of names of the published API to Python names
* `memory`: In-process channel that calls handlers without a network, through serialized messages
* `own`: Calls for which the published API has no messages
* `server.target`: Interface to the objects that answer calls, and the description of a call
* `convert.values`: Conversion between JSON-like Python values and free-form messages (Struct, Value, ListValue)
* `messages` (module): Messages of published services and of our own, loaded on first use
* `table`: Table of protobuf services and their APIs, with information that descriptors lack
* `convert.encode`: Conversion of Python values to messages, by the type of the value, so that no type hints are needed
* `client`: Client that calls published APIs by name, with Python values as arguments and plain Python values as results
* `server.check`: Check that a Python class fits a published service
* `descriptions`: Description of the methods of an API for command line help, forms on pages and the reference
  documentation
* `server.adapter`: Handlers of published services for `rpc.call`, built once from Python classes, descriptors and type
  hints
* `arguments`: Parser for call arguments from a command line: `power_pct=0.5`, `pin_names=a,b`, `extra={"a": 1}`
* `server.router`: Router of the published APIs, which loads the messages of a service on its first call
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.api import messages as messages
    from rpc.api.arguments import parse_arguments as parse_arguments
    from rpc.api.client import ApiClient as ApiClient
    from rpc.api.client import build_request as build_request
    from rpc.api.client import find_method as find_method
    from rpc.api.client import methods_for as methods_for
    from rpc.api.cloud_v1 import AGENTS as AGENTS
    from rpc.api.cloud_v1 import ALERTS as ALERTS
    from rpc.api.cloud_v1 import FLEET as FLEET
    from rpc.api.cloud_v1 import HEALTH as HEALTH
    from rpc.api.cloud_v1 import HISTORY as HISTORY
    from rpc.api.cloud_v1 import INVITATIONS as INVITATIONS
    from rpc.api.cloud_v1 import RELEASES as RELEASES
    from rpc.api.cloud_v1 import ROLLOUTS as ROLLOUTS
    from rpc.api.cloud_v1 import TRAINING as TRAINING
    from rpc.api.cloud_v1 import TRIGGERS as TRIGGERS
    from rpc.api.convert.encode import field_filler as field_filler
    from rpc.api.convert.encode import message_fill as message_fill
    from rpc.api.convert.fit import FitError as FitError
    from rpc.api.convert.hints import signature_of as signature_of
    from rpc.api.convert.names import NAME_FIELDS as NAME_FIELDS
    from rpc.api.convert.names import python_name as python_name
    from rpc.api.convert.values import fill_fields as fill_fields
    from rpc.api.convert.values import fill_value as fill_value
    from rpc.api.convert.values import read_struct as read_struct
    from rpc.api.convert.values import read_value as read_value
    from rpc.api.descriptions import ArgumentInfo as ArgumentInfo
    from rpc.api.descriptions import MethodInfo as MethodInfo
    from rpc.api.descriptions import describe as describe
    from rpc.api.memory import MemoryChannel as MemoryChannel
    from rpc.api.own import MAX_REQUEST as MAX_REQUEST
    from rpc.api.own import SERIES as SERIES
    from rpc.api.own import Raw as Raw
    from rpc.api.server.adapter import serve_api as serve_api
    from rpc.api.server.adapter import serve_service as serve_service
    from rpc.api.server.check import implementation_problems as implementation_problems
    from rpc.api.server.router import ApiRouter as ApiRouter
    from rpc.api.server.target import CallInfo as CallInfo
    from rpc.api.server.target import CallTarget as CallTarget
    from rpc.api.table import APIS as APIS
    from rpc.api.table import MONITORED as MONITORED
    from rpc.api.table import SERVICES as SERVICES
    from rpc.api.table import add_api as add_api
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "cloud_v1": [
                "AGENTS",
                "ALERTS",
                "FLEET",
                "HEALTH",
                "HISTORY",
                "INVITATIONS",
                "RELEASES",
                "ROLLOUTS",
                "TRAINING",
                "TRIGGERS",
            ],
            "convert.fit": ["FitError"],
            "convert.hints": ["signature_of"],
            "convert.names": ["NAME_FIELDS", "python_name"],
            "memory": ["MemoryChannel"],
            "own": ["MAX_REQUEST", "SERIES", "Raw"],
            "server.target": ["CallInfo", "CallTarget"],
            "convert.values": ["fill_fields", "fill_value", "read_struct", "read_value"],
            "table": ["APIS", "MONITORED", "SERVICES", "add_api"],
            "convert.encode": ["field_filler", "message_fill"],
            "client": ["ApiClient", "build_request", "find_method", "methods_for"],
            "server.check": ["implementation_problems"],
            "descriptions": ["ArgumentInfo", "MethodInfo", "describe"],
            "server.adapter": ["serve_api", "serve_service"],
            "arguments": ["parse_arguments"],
            "server.router": ["ApiRouter"],
        },
        modules=["messages"],
    )
