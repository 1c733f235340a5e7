"""The pytest plugin: options, the marker `machine`, and the fixtures `rig` and `faults`. Requires pytest-trio.

Every pytest run loads it where this package is installed, so imports are deferred until a test uses the rig.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from rig.artefacts import Journal
    from rig.faults import Faults
    from rig.rig import Rig
    from rig.session import TestState

MARKER: Final = (
    "machine(config, plant=None, models=(), sample=0, timeout=None): the machine that the fixture `rig` runs: a "
    "document, or its path relative to the test; the class of its plant; additional drivers; seconds between "
    "samples of its sensors; time limit in seconds"
)
DEFAULT_LIMIT: Final = 600.0  # seconds on the clock of the test
DEFAULT_FOLDER: Final = "artifacts/rig"

_STATE: Final[pytest.StashKey[TestState]] = pytest.StashKey()
_JOURNAL: Final[pytest.StashKey[Journal]] = pytest.StashKey()
_WRONG: Final[pytest.StashKey[list[str]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the rig."""
    group = parser.getgroup("rig", "machines under test")
    group.addoption(
        "--rig",
        default="sim",
        metavar="KIND",
        help="sim, linux, host:port, module:function, or a name in the setting `rigs`",
    )
    group.addoption("--rig-clock", choices=("virtual", "real"), help="default: virtual with --rig sim, real otherwise")
    group.addoption(
        "--rig-seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of noise and faults: the same seed gives the same events",
    )
    group.addoption(
        "--rig-timeout",
        type=float,
        default=DEFAULT_LIMIT,
        metavar="SECONDS",
        help="time limit of a test on its clock; 0: no limit",
    )
    group.addoption(
        "--rig-artefacts", default=DEFAULT_FOLDER, metavar="FOLDER", help="folder for logs, readings and plots"
    )
    parser.addini("rigs", "additional kinds of rig, one `name = module:function` per line", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)
    config.stash[_WRONG] = []


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the journal."""
    if (journal := config.stash.get(_JOURNAL, None)) is not None:
        journal.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make a test that uses the rig run in `rig.run.Run`. Fails a test that is not async."""
    if "rig" not in getattr(item, "fixturenames", ()):
        return
    if not item.config.pluginmanager.hasplugin("trio"):
        pytest.fail('the rig needs pytest-trio: pip install "machine-runtime[rig]"', pytrace=False)
    function: Any = item.obj  # type: ignore[attr-defined]
    if not inspect.iscoroutinefunction(function):
        kind = "a Hypothesis test, which runs many times" if hasattr(function, "hypothesis") else "not async"
        pytest.fail(f"{item.name} uses the rig and is {kind}: write `async def {item.name}(rig)`", pytrace=False)
    state = _make_state(item)
    item.stash[_STATE] = state
    # Before the marker that pytest-trio adds to every async test in its automatic mode.
    item.add_marker(pytest.mark.trio(run=state.run), append=False)
    state.run.begin.append(lambda: state.journal.note(f"== {item.nodeid}"))


def _make_state(item: pytest.Item) -> TestState:
    from rig.artefacts import JOURNAL, Journal, file_name
    from rig.run import Run
    from rig.session import TestState

    config = item.config
    marker_arguments = _marker_arguments(item)
    kind: str = config.getoption("rig")
    clock = config.getoption("rig_clock") or ("virtual" if kind == "sim" else "real")
    if clock == "virtual" and kind != "sim":
        raise pytest.UsageError(f"--rig {kind} has no virtual clock: leave out --rig-clock virtual")
    limit = marker_arguments.get("timeout")
    working_directory = config.invocation_params.dir
    folder = working_directory / config.getoption("rig_artefacts")
    if (journal := config.stash.get(_JOURNAL, None)) is None:
        (folder / JOURNAL).unlink(missing_ok=True)
        journal = config.stash[_JOURNAL] = Journal(folder / JOURNAL)
    own = folder / file_name(item.nodeid)
    shown = own.relative_to(working_directory) if own.is_relative_to(working_directory) else own
    # Not record_property: it warns about the format xunit2, whose schema has no properties of tests.
    item.user_properties += [
        ("rig", kind),
        ("rig.clock", clock),
        ("rig.seed", str(config.getoption("rig_seed"))),
        ("rig.artefacts", str(shown)),
    ]
    run = Run(virtual=clock == "virtual", limit=float(config.getoption("rig_timeout") if limit is None else limit))
    state = TestState(
        kind=kind,
        seed=config.getoption("rig_seed"),
        folder=own,
        base=item.path.parent,
        marker_arguments=marker_arguments,
        run=run,
        journal=journal,
        providers=dict(_parse_rigs(config.getini("rigs"))),
    )
    run.finish.append(state.finish)
    return state


def _parse_rigs(lines: list[str]) -> list[tuple[str, str]]:
    pairs = [[part.strip() for part in line.split("=", 1)] for line in lines if line.strip()]
    for pair in pairs:
        if len(pair) != 2:
            raise pytest.UsageError(f"the setting `rigs`: {pair[0]!r} is not `name = module:function`")
    return [(name, path) for name, path in pairs]


def _marker_arguments(item: pytest.Item) -> Mapping[str, Any]:
    """Return the merged arguments of the markers; the closest marker takes precedence."""
    marker_arguments: dict[str, Any] = {}
    for marker in item.iter_markers("machine"):
        arguments = dict(marker.kwargs)
        if marker.args:
            arguments["config"] = marker.args[0]
        unknown = arguments.keys() - {"config", "plant", "models", "sample", "timeout"}
        if unknown or len(marker.args) > 1:
            raise pytest.UsageError(
                f"{item.nodeid}: the marker has invalid arguments; expected {MARKER.partition(':')[0]}"
            )
        marker_arguments = {**arguments, **marker_arguments}
    return marker_arguments


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Add the end of the machine's log to the report of a failed test; stop the session after unsafe outputs."""
    report = yield
    state = item.stash.get(_STATE, None)
    if state is None or call.when != "call":
        return report
    item.user_properties.append(("rig.outputs", "; ".join(state.run.wrong) or "safe"))
    if state.run.wrong:
        item.config.stash[_WRONG].extend(f"{item.nodeid}: {text}" for text in state.run.wrong)
        item.session.shouldfail = f"outputs are not safe after {item.nodeid}"
    if report.failed and state.artefacts is not None:
        report.sections.append(("log of the machine", state.artefacts.tail()))
        report.sections.append(("artefacts", str(state.folder)))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List unsafe outputs at the end of the summary."""
    if wrong := config.stash[_WRONG]:
        terminalreporter.section("OUTPUTS ARE NOT SAFE", sep="!", red=True, bold=True)
        for text in wrong:
            terminalreporter.line(text)


@pytest.fixture
def machine_config(request: pytest.FixtureRequest) -> object:
    """The configuration of the machine, from the marker. Override this fixture to compute a configuration."""
    marker_arguments = request.node.stash[_STATE].marker_arguments
    if "config" not in marker_arguments:
        pytest.fail('no configuration: mark the test with @pytest.mark.machine("machine.json")', pytrace=False)
    return marker_arguments["config"]


@pytest.fixture
def machine_plant(request: pytest.FixtureRequest) -> Any:
    """The class of the plant, or its name `module:Class`, from the marker. Override this fixture to compute one."""
    return request.node.stash[_STATE].marker_arguments.get("plant")


@pytest.fixture
async def _rig_watch(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """End the test on Ctrl-C and at its time limit, before the machine is stopped."""
    import trio

    async with trio.open_nursery() as nursery:
        nursery.start_soon(request.node.stash[_STATE].run.watch)
        yield
        nursery.cancel_scope.cancel()


@pytest.fixture
async def rig(
    request: pytest.FixtureRequest,
    machine_config: object,
    machine_plant: Any,
    _rig_watch: None,
) -> AsyncIterator[Rig]:
    """A machine that runs for the duration of the test. Its outputs are safe before the next test begins."""
    from rig.session import open_rig

    async with open_rig(request.node.stash[_STATE], machine_config, machine_plant) as running:
        yield running


@pytest.fixture
def faults(rig: Rig) -> Faults:
    """Fault injection around the machine; each fault is active inside `async with`."""
    return rig.faults
