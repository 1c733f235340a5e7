"""viam.app.agent.v1.AgentDeviceService: what the agent of a machine asks for."""

from __future__ import annotations

from cloud.services.base import Service, guarded


@guarded({})
class AgentDeviceService(Service):
    """One call. What is not here is UNIMPLEMENTED."""
