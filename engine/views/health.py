"""Health of a machine as one number: how much of what is configured does not work. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.views.status import MachineState, MachineStatus, ResourceStatus


@dataclass(frozen=True, slots=True)
class MachineHealth:
    """Counts of a machine; the cloud adds the last three up."""

    ready: int
    unhealthy: int  # resources that have failed, until they are ready
    waiting: int  # resources that wait for others; 0 while the machine starts
    problems: int  # mistakes in the configuration

    @property
    def total(self) -> int:
        """Number of problems: what every page, command and metric shows."""
        return self.unhealthy + self.waiting + self.problems


def is_failing(resource: ResourceStatus, state: MachineState) -> bool:
    """Return whether a resource counts as a problem of a machine in this state."""
    return resource.state == "unhealthy" or (resource.state == "unconfigured" and state is MachineState.RUNNING)


def health_of(status: MachineStatus) -> MachineHealth:
    """Return the health of a machine. It changes only when a resource becomes ready, or ceases to be ready.

    A resource that is retried stays unhealthy (`engine.planning.reasons.state_of`).
    """
    failing = [resource.state for resource in status.resources if is_failing(resource, status.state)]
    return MachineHealth(
        ready=sum(resource.state == "ready" for resource in status.resources),
        unhealthy=failing.count("unhealthy"),
        waiting=failing.count("unconfigured"),
        problems=len(status.config.problems),
    )


def health_word(status: MachineStatus) -> str:
    """Return the health of a machine in one word; empty if everything works."""
    if status.state is not MachineState.RUNNING:
        return str(status.state.value)
    return "degraded" if health_of(status).total or status.config.rejected else ""
