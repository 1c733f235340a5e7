"""Calls to resources: dispatch to drivers, operations, sessions and limits.

Public, in the order in which to read them:

* `introduction`: Introductions: what a caller through the cloud needs to reach this machine directly, in the same
  network
* `operations`: Operations: the calls in progress, which can be listed, cancelled and awaited by id
* `sessions`: Sessions: if a client that commands actuators is silent for too long, they are stopped
* `spans`: Creates trace spans of calls and of starting and stopping nodes
* `counts`: Counts calls by resource and method, and creates spans of calls while tracing is enabled
* `stop`: Stops actuators: all of them, or those that a lost client commanded
* `traffic`: What a machine keeps of the calls of its clients
* `dispatch`: Dispatch: passes each call to its driver, within operation, session, limits, deadline and lifetime of the
  driver
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.calls.counts import Calls as Calls
    from engine.calls.dispatch import REQUESTS_LIMIT as REQUESTS_LIMIT
    from engine.calls.dispatch import Dispatch as Dispatch
    from engine.calls.dispatch import owner_of as owner_of
    from engine.calls.introduction import CLOUD as CLOUD
    from engine.calls.introduction import INTRODUCTION_KEY as INTRODUCTION_KEY
    from engine.calls.introduction import Introduction as Introduction
    from engine.calls.introduction import parse_introduction as parse_introduction
    from engine.calls.introduction import reachable as reachable
    from engine.calls.introduction import requests_introduction as requests_introduction
    from engine.calls.introduction import this_computer as this_computer
    from engine.calls.operations import Operation as Operation
    from engine.calls.operations import Operations as Operations
    from engine.calls.sessions import EXPIRED as EXPIRED
    from engine.calls.sessions import SESSION_KEY as SESSION_KEY
    from engine.calls.sessions import WINDOW_KEY as WINDOW_KEY
    from engine.calls.sessions import Sessions as Sessions
    from engine.calls.sessions import window_of as window_of
    from engine.calls.spans import Tracer as Tracer
    from engine.calls.stop import stop_all as stop_all
    from engine.calls.stop import stop_resources as stop_resources
    from engine.calls.traffic import Traffic as Traffic
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "introduction": [
                "CLOUD",
                "INTRODUCTION_KEY",
                "Introduction",
                "parse_introduction",
                "reachable",
                "requests_introduction",
                "this_computer",
            ],
            "operations": ["Operation", "Operations"],
            "sessions": ["EXPIRED", "SESSION_KEY", "WINDOW_KEY", "Sessions", "window_of"],
            "spans": ["Tracer"],
            "counts": ["Calls"],
            "stop": ["stop_all", "stop_resources"],
            "traffic": ["Traffic"],
            "dispatch": ["REQUESTS_LIMIT", "Dispatch", "owner_of"],
        },
    )
