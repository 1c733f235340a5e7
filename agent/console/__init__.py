"""The control channel of the agent, and its client: `machine agent` on the same computer.

Public, in the order in which to read them:

* `client`: Client of the agent's control channel
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.console.client import NoAgentError as NoAgentError
    from agent.console.client import request as request
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "client": ["NoAgentError", "request"],
        },
    )
