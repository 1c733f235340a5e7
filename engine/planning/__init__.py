"""Plans the resources that should exist from a document, and explains why one does not.

Public, in the order in which to read them:

* `defaults`: The services that a machine has without an entry in its document
* `node_names`: The names of the nodes that are not resources
* `reconfigure`: Plans the resources that should exist for a machine document: pure, complete, and tolerant of bad
  entries
* `refused`: Nodes for configuration entries that cannot be built: they fail, and their status shows the reason
* `remote_names`: Names and selects the resources of a remote on this machine: pure
* `maintenance`: Decides whether the machine may be reconfigured or restarted now, a pure function of given facts
* `reasons`: Explains the states of nodes to people
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.planning.defaults import with_defaults as with_defaults
    from engine.planning.maintenance import ANSWER_LIMIT as ANSWER_LIMIT
    from engine.planning.maintenance import FACTS_KEY as FACTS_KEY
    from engine.planning.maintenance import RETRY_INTERVAL as RETRY_INTERVAL
    from engine.planning.maintenance import Answer as Answer
    from engine.planning.maintenance import Decision as Decision
    from engine.planning.maintenance import NoAnswer as NoAnswer
    from engine.planning.maintenance import NoWindow as NoWindow
    from engine.planning.maintenance import decide as decide
    from engine.planning.maintenance import facts_of as facts_of
    from engine.planning.node_names import INTERNAL as INTERNAL
    from engine.planning.node_names import REMOTE as REMOTE
    from engine.planning.node_names import RPC as RPC
    from engine.planning.node_names import SESSIONS as SESSIONS
    from engine.planning.node_names import package_node as package_node
    from engine.planning.reasons import plain as plain
    from engine.planning.reasons import reason_of as reason_of
    from engine.planning.reasons import since_of as since_of
    from engine.planning.reasons import state_of as state_of
    from engine.planning.reconfigure import PlannedResource as PlannedResource
    from engine.planning.reconfigure import plan as plan
    from engine.planning.reconfigure import plan_resource as plan_resource
    from engine.planning.refused import NO_RESTART as NO_RESTART
    from engine.planning.refused import refusal as refusal
    from engine.planning.remote_names import MACHINES_KEY as MACHINES_KEY
    from engine.planning.remote_names import RemoteReport as RemoteReport
    from engine.planning.remote_names import behind as behind
    from engine.planning.remote_names import name_here as name_here
    from engine.planning.remote_names import usable_names as usable_names
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "defaults": ["with_defaults"],
            "node_names": ["INTERNAL", "REMOTE", "RPC", "SESSIONS", "package_node"],
            "reconfigure": ["PlannedResource", "plan", "plan_resource"],
            "refused": ["NO_RESTART", "refusal"],
            "remote_names": ["MACHINES_KEY", "RemoteReport", "behind", "name_here", "usable_names"],
            "maintenance": [
                "ANSWER_LIMIT",
                "FACTS_KEY",
                "RETRY_INTERVAL",
                "Answer",
                "Decision",
                "NoAnswer",
                "NoWindow",
                "decide",
                "facts_of",
            ],
            "reasons": ["plain", "reason_of", "since_of", "state_of"],
        },
    )
