"""Engines: what runs the program of a job. `port` is the interface, `local` runs it on this computer.

Public, in the order in which to read them:

* `lock` (module): Locks by which a worker learns that another one has ended on this computer, with everything that it
  started
* `port`: The interface between the queue of jobs and what runs them
* `ray_client`: The Jobs API of a Ray cluster (REST, on the port of its dashboard)
* `usage`: Measurement and packing of folders that a program wrote and that may contain anything
* `groups`: Control groups (version 2) for programs: limits on everything that a job runs together, and what it has used
* `reasons`: Why a program failed: from its exit status, what it has used, and what it printed
* `local`: The engine that runs programs on this computer: a confined process for each job
* `ray_engine`: The engine that runs programs on a Ray cluster
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.engine import lock as lock
    from training.engine.groups import Groups as Groups
    from training.engine.groups import open_groups as open_groups
    from training.engine.local import LocalEngine as LocalEngine
    from training.engine.local import inspected_interpreter as inspected_interpreter
    from training.engine.port import CLOUD as CLOUD
    from training.engine.port import MIB as MIB
    from training.engine.port import Connect as Connect
    from training.engine.port import Engine as Engine
    from training.engine.port import Order as Order
    from training.engine.port import RunOutcome as RunOutcome
    from training.engine.ray_client import parse_address as parse_address
    from training.engine.ray_client import parse_placement as parse_placement
    from training.engine.ray_client import ray_jobs as ray_jobs
    from training.engine.ray_engine import Cluster as Cluster
    from training.engine.ray_engine import RayEngine as RayEngine
    from training.engine.reasons import reason_of as reason_of
    from training.engine.usage import pack_folder as pack_folder
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "port": ["CLOUD", "MIB", "Connect", "Engine", "Order", "RunOutcome"],
            "ray_client": ["parse_address", "parse_placement", "ray_jobs"],
            "usage": ["pack_folder"],
            "groups": ["Groups", "open_groups"],
            "reasons": ["reason_of"],
            "local": ["LocalEngine", "inspected_interpreter"],
            "ray_engine": ["Cluster", "RayEngine"],
        },
        modules=["lock"],
    )
