"""ResourceHost: runs a driver, and guards every method call to it.

The order is fixed: construct, start, open for calls; then close for calls, cancel the calls in progress and wait for
them, stop an actuator, and only then run the driver's own cleanup. The dependencies of the driver run all this time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio
from grpclib.exceptions import GRPCError, StreamTerminatedError

from engine.planning.reconfigure import PlannedResource
from engine.resource import Actuator, Context, Others, Resource, no_document, no_others
from hal import Hardware
from hal.sim import World
from schema import ErrorKind, MachineError, ResourceName

if TYPE_CHECKING:
    from schema.document import MachineDocument

CALLS_LIMIT: Final = 10.0  # seconds for cancelled calls to end; more than a bus transaction, less than stop_timeout
REST_LIMIT: Final = 5.0  # seconds for an actuator to stop before its driver is cancelled anyway

FAILING_LIMIT: Final = 1.0  # seconds that an unexpected error of a call waits for its driver to fail


class Use:
    """Context manager around the use of a driver: `async with host.use() as driver:`."""

    __slots__ = ("_host", "_own", "_scope")

    def __init__(self, host: ResourceHost, scope: trio.CancelScope | None = None) -> None:
        self._host = host
        self._own = scope is None
        self._scope = trio.CancelScope() if scope is None else scope

    async def __aenter__(self) -> Resource:
        host = self._host
        if not host.is_open:
            raise host.closed_error()
        host.calls.add(self._scope)
        if self._own:
            self._scope.__enter__()
        return host.resource

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        host = self._host
        host.calls.discard(self._scope)
        if not host.calls:
            host.calls_ended.set()
        suppressed = self._own and bool(self._scope.__exit__(kind, error, traceback))
        if self._own and self._scope.cancelled_caught:
            raise host.closed_error()
        if error is not None and _is_unexpected(error) and await host.is_failing():
            raise host.closed_error() from error
        return suppressed


class ResourceHost:
    """A driver from construction to cleanup; the value that its node passes to dependents and to dispatch.

    `changed(host, is_open)` is called when the host opens and when it closes for calls.
    """

    def __init__(
        self,
        planned: PlannedResource,
        *,
        world: World,
        hardware: Hardware,
        log: structlog.stdlib.BoundLogger,
        changed: Callable[[ResourceHost, bool], None] = lambda host, is_open: None,
        others: Others = no_others,
        document: Callable[[], MachineDocument] = no_document,
    ) -> None:
        assert isinstance(planned.name, ResourceName)
        self.name: ResourceName = planned.name
        self.model = planned.model
        self.calls: set[trio.CancelScope] = set()
        self.calls_ended = trio.Event()
        self.is_open = False
        self.resource: Resource = _NO_DRIVER  # set by run
        self._planned = planned
        self._world = world
        self._hardware = hardware
        self._log = log
        self._changed = changed
        self._others = others
        self._document = document
        self._driver_run: _DriverRun | None = None

    def use(self, scope: trio.CancelScope | None = None) -> Use:
        """Return a context manager around a method call.

        Entering raises MachineError (UNAVAILABLE) unless the resource is ready. If the resource stops, the body is
        cancelled and leaving raises the same error. With `scope`, which the caller enters and leaves, the caller raises
        it: a scope is a twentieth of the cost of a call.
        """
        return Use(self, scope)

    def closed_error(self) -> MachineError:
        """Return the error for a call while the resource is not open."""
        failure = self._driver_run.failure if self._driver_run is not None else None
        state = "is stopping or not ready" if failure is None else f"has failed: {_reason(failure)}"
        return MachineError(f"{self.name} {state}", kind=ErrorKind.UNAVAILABLE, remedy="try again later")

    async def is_failing(self) -> bool:
        """Return whether the driver's `run` fails within FAILING_LIMIT.

        While `run` cleans up after an exception, that exception is not visible yet. So a call with an unexpected error
        first waits for the end of `run` before the error is reported as a bug.
        """
        assert self._driver_run is not None
        with trio.move_on_after(FAILING_LIMIT):
            await self._driver_run.ended.wait()
        return self._driver_run.failure is not None

    async def run(self, deps: Mapping[str, Any], *, task_status: trio.TaskStatus[ResourceHost]) -> None:
        """Run the driver until cancelled.

        Raises the errors of its constructor and of its `run`, or MachineError if `run` returned early.
        """
        self.resource = self._construct(deps)
        driver_run = self._driver_run = _DriverRun(self.resource)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(driver_run.run, name=f"{self.name} run")
                await driver_run.ready.wait()
                if driver_run.ended.is_set():
                    return
                driver_run.scope.shield = True
                try:
                    self._open(is_open=True)
                    task_status.started(self)
                    await driver_run.ended.wait()
                finally:
                    self._open(is_open=False)
                    with trio.CancelScope(shield=True):
                        await self._drain()
                        if not driver_run.ended.is_set():
                            await self._stop_actuator()
                        driver_run.scope.cancel()
                        await driver_run.ended.wait()
        finally:
            if driver_run.failure is not None:
                raise driver_run.failure

    def _construct(self, deps: Mapping[str, Any]) -> Resource:
        planned = self._planned
        assert planned.cls is not None
        context = Context(
            name=self.name,
            attributes=planned.attributes,
            dependencies={host.name: host.resource for host in deps.values() if isinstance(host, ResourceHost)},
            world=self._world,
            hardware=self._hardware,
            log=self._log,
            others=self._others,
            document=self._document,
        )
        return planned.cls(context)

    def _open(self, *, is_open: bool) -> None:
        self.is_open = is_open
        self._changed(self, is_open)

    async def _drain(self) -> None:
        """Cancel the calls in progress and wait until they have ended."""
        if not self.calls:
            return
        self.calls_ended = trio.Event()
        for scope in tuple(self.calls):
            scope.cancel()
        with trio.move_on_after(CALLS_LIMIT) as limit:
            await self.calls_ended.wait()
        if limit.cancelled_caught:
            self._log.error("calls did not end when cancelled", calls=len(self.calls), seconds=CALLS_LIMIT)

    async def _stop_actuator(self) -> None:
        """Stop an actuator; a failure is only logged."""
        if not isinstance(self.resource, Actuator):
            return
        with trio.move_on_after(REST_LIMIT) as limit:
            try:
                await self.resource.come_to_rest()
            except Exception as error:
                self._log.error(
                    "the actuator could not be stopped before its driver ended", error=str(error) or repr(error)
                )
        if limit.cancelled_caught:
            self._log.error("the actuator did not stop in time before its driver ended", seconds=REST_LIMIT)


class _DriverRun:
    """The driver's `run` in its own cancel scope, which is shielded from the node's cancellation once it is ready."""

    def __init__(self, resource: Resource) -> None:
        self.scope = trio.CancelScope()
        self.ready = trio.Event()  # also set if it ends before it is ready
        self.ended = trio.Event()
        self.failure: BaseException | None = None
        self._resource = resource

    def started(self, value: None = None) -> None:
        """Mark the driver as ready; this object is its task_status."""
        if self.ready.is_set():
            raise RuntimeError("task_status.started() was called twice")
        self.ready.set()

    async def run(self) -> None:
        try:
            with self.scope:
                await self._resource.run(task_status=self)
            if not self.scope.cancel_called:
                when = "while it was in use" if self.ready.is_set() else "before it was ready"
                self.failure = MachineError(f"{self._resource.name}: run returned {when}", kind=ErrorKind.INTERNAL)
        except trio.Cancelled:
            raise
        except BaseException as error:
            # The host raises it outside its nursery, without a group: the status then shows the driver's own error.
            self.failure = error
        finally:
            self.ready.set()
            self.ended.set()


def _single_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _is_unexpected(error: BaseException) -> bool:
    """Return whether a call's error is unexpected: neither raised on purpose nor caused by the call's connection."""
    error = _single_cause(error)
    expected = (MachineError, NotImplementedError, GRPCError, StreamTerminatedError)
    return isinstance(error, Exception) and not isinstance(error, expected)


def _reason(error: BaseException) -> str:
    error = _single_cause(error)
    return error.message if isinstance(error, MachineError) else str(error) or repr(error)


class _NoDriver(Resource):
    def __init__(self) -> None:
        """Create the placeholder used until a driver is constructed."""


_NO_DRIVER: Final = _NoDriver()
