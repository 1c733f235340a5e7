"""What is offered to the driver of a program: by a person at this device, by the cloud, or by the device's settings."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import structlog
import trio

from agent.actions.driver import Driver
from agent.releases.choose import Keep, Read, Refuse, ReleaseQuestion, choose, choose_file
from agent.releases.signed import Signed
from agent.update.desired import DesiredVersion
from agent.update.record import Release, ReleaseOffer, UpdateRecord
from schema import ConfigError, ErrorKind, MachineError, VersionForm, version_form
from schema.agent import shown_url
from support import ChangeSignal, doubled
from support.files import replace_file
from uplink.releases import Header

LIMIT: Final = 300.0
"""Seconds for the metadata of releases, or for a file whose hash is not known."""
RETRY: Final = 300.0
"""Seconds after which a failed look-up is repeated, unless the cloud or a person asks for it before."""
LONGEST_PAUSE: Final = 86400.0
"""Seconds between two attempts to identify the file at a URL: each may transfer as much as a release has."""
HURRY: Final = 86400.0
"""Seconds for which a request not to wait for maintenance is kept while no release can be offered."""
MAX_CHOICE: Final = 2000  # characters of a version or URL

_DECISIONS: Final[Mapping[type, str]] = {ReleaseOffer: "take", Keep: "keep", Refuse: "refuse"}  # as logged

_log = structlog.get_logger("agent.update")


class Identified(NamedTuple):
    """What a file says about itself."""

    header: Header
    sha256: str
    size: int


class Catalog(Protocol):
    """The signed releases, and files whose hash is not known yet."""

    async def signed(self, *, fresh: bool = False) -> tuple[Signed, ...] | None:
        """Return the releases that the organization signed; None if no root is pinned. Raises MachineError.

        The metadata may be some minutes old, unless `fresh`.
        """
        ...

    async def identify(self, url: str) -> Identified:
        """Return identity, hash and size of the file at a URL that `choose` accepted. Raises MachineError."""
        ...


class ChosenVersion(msgspec.Struct, frozen=True):
    """A version or URL that a person has chosen on this device; it stays in force until the person ends it."""

    choice: str
    since: float  # seconds since 1970


@dataclass(frozen=True)
class _Failed:
    """A file that could not be identified."""

    error: MachineError
    until: float  # Trio's time before which it is not fetched again
    failures: int  # in a row

    def again(self) -> MachineError:
        return MachineError(self.error.message, kind=self.error.kind, remedy=self.error.remedy)


@dataclass
class _State:
    """What decides about one program."""

    setting: str = "stable"
    answer: DesiredVersion | None = None
    answered: bool = False  # the cloud has answered since the start
    wish: ChosenVersion | None = None
    explicit: bool = False  # the wish is new: it may be in quarantine
    at_once: float = 0.0  # until when, by Trio's clock, a person does not want to wait for maintenance
    sought: str = ""  # hash that the cloud named and that fresh metadata was searched for


class ReleaseOffers:
    """Finds out which release each program is to run, and offers it. `run_blocking` calls functions in a worker.

    Nothing is looked up while the installed release is the one that is wanted, so this costs nothing usually.
    """

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        catalog: Catalog,
        file: Path,
        run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]],
        *,
        part: str,
        platform: str,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.problems: dict[str, ConfigError] = {}
        """What keeps a wanted release from being offered, by program."""
        self.kept: dict[str, str] = {}
        """Why another release than the installed one is not offered although nothing is wrong, by program."""
        self.version_problems: tuple[ConfigError, ...] = ()
        """What is wrong with the versions of the configuration, as the cloud says, which reads them."""
        self._drivers, self._catalog, self._file, self._run_blocking = drivers, catalog, file, run_blocking
        self._part, self._platform, self._wall = part, platform, wall
        self._states = {name: _State() for name in drivers}
        self._considered = {name: trio.Event() for name in drivers}
        self._read: dict[str, Identified] = {}  # files at URLs, so that they are downloaded once
        self._failed: dict[str, _Failed] = {}  # files at URLs that could not be identified
        self._allow_http = False
        self._news = ChangeSignal()
        self._changed = ChangeSignal()  # `problems`, `kept` and `version_problems`

    # ---- what is wanted

    async def load(self) -> None:
        """Load what people have chosen on this device. A damaged file counts as nothing chosen."""
        for name, wish in (await self._run_blocking(partial(_load, self._file))).items():
            if name in self._states:
                self._states[name].wish = wish

    def settings(self, versions: Mapping[str, str], *, allow_http: bool) -> None:
        """Take `version_control` of the settings, by program."""
        for name, version in versions.items():
            if name in self._states:
                self._states[name].setting = version
        self._allow_http = allow_http
        self._news.announce()

    def answered(self, answers: Mapping[str, DesiredVersion | None], problems: tuple[ConfigError, ...] = ()) -> None:
        """Take what the cloud wants, by program, and what is wrong with the versions of the configuration."""
        if [str(problem) for problem in problems] != [str(problem) for problem in self.version_problems]:
            for problem in problems:
                _log.warning(
                    "a version is not valid", setting=problem.path, problem=problem.reason, remedy=problem.remedy
                )
            self.version_problems = problems
            self._notice()
        for name, answer in answers.items():
            state = self._states.get(name)
            if state is not None and (not state.answered or state.answer != answer):
                state.answer, state.answered = answer, True
                self._news.announce()

    async def considered(self, name: str) -> None:
        """Wait until the first answer of the cloud has led to an offer for this program, or to none."""
        await self._considered[name].wait()

    def wish(self, name: str) -> ChosenVersion | None:
        """Return what a person has chosen on this device."""
        state = self._states.get(name)
        return state.wish if state is not None else None

    async def choose(self, name: str, choice: str, *, at_once: bool = False) -> None:
        """Install what a person has chosen: a version or URL. An empty `choice` follows the cloud again.

        Raises MachineError: INVALID for something else, UNAVAILABLE if it cannot be stored. Whether the release exists
        is found out later: see `problems`.
        """
        state = self._state(name)
        if choice and (len(choice) > MAX_CHOICE or version_form(choice) in (None, VersionForm.STABLE, VersionForm.DEV)):
            raise MachineError(
                f"{choice[:100]!r} is neither a version nor a URL",
                kind=ErrorKind.INVALID,
                remedy="write a version such as 1.2.3, or an https:// or file:/// URL",
            )
        wishes = {other: entry.wish for other, entry in self._states.items() if entry.wish is not None}
        wishes.pop(name, None)
        if choice:
            wishes[name] = ChosenVersion(choice, self._wall())
        try:
            await self._run_blocking(partial(replace_file, self._file, msgspec.json.encode(wishes)))
        except OSError as error:
            raise MachineError(
                f"the choice cannot be stored in {self._file}: {error.strerror}",
                kind=ErrorKind.UNAVAILABLE,
                remedy="check the disk",
            ) from None
        state.wish = wishes.get(name)
        state.explicit, state.at_once = bool(choice), trio.current_time() + HURRY if at_once else 0.0
        self._read.pop(choice, None)
        self._failed.pop(choice, None)
        self._news.announce()

    def hurry(self, name: str) -> None:
        """Do not wait for maintenance with what is wanted now: a person requested it. Raises MachineError."""
        self._state(name).at_once = trio.current_time() + HURRY
        self._news.announce()

    def _state(self, name: str) -> _State:
        if name not in self._states:
            raise not_updated(name)
        return self._states[name]

    # ---- offering

    async def run(self) -> None:
        """Offer whenever something changes, until cancelled. Needs the cloud's first answer, or a wish."""
        while True:
            wait = float("inf")
            news = self._news.next
            for name, state in self._states.items():
                answered = state.answered
                if not await self._offer(name, state):
                    wait = RETRY
                if answered:
                    self._considered[name].set()
            with trio.move_on_after(wait):
                await news.wait()

    async def _offer(self, name: str, state: _State) -> bool:
        """Offer one program what is wanted; return whether that was found out."""
        driver = self._drivers[name]
        if driver.record is None or not (state.answered or state.wish):
            return True
        try:
            with trio.fail_after(LIMIT):
                choice = await self._choose(driver.record, state)
        except (MachineError, OSError) as error:
            self._note(name, ConfigError(name, f"its release cannot be looked up: {error}"))
            return False
        except trio.TooSlowError:
            self._note(name, ConfigError(name, f"its release cannot be looked up: no answer within {LIMIT:g} s"))
            return False
        self._explain(name, state, driver.record, choice)
        self._note(name, choice.problem if isinstance(choice, Refuse) else None)
        try:
            await driver.offer(
                choice if isinstance(choice, ReleaseOffer) else None, now=trio.current_time() < state.at_once
            )
        except MachineError as error:
            self._note(name, ConfigError(name, str(error)))
            return False
        state.explicit, state.at_once = False, 0.0
        return True

    async def _choose(self, record: UpdateRecord, state: _State) -> ReleaseOffer | Keep | Refuse:
        answer = state.answer if state.wish is None else None
        if answer is not None and answer.sha256 == record.slots.current.sha256:
            return Keep(f"version {answer.version} is installed", installed=True)
        asked = ReleaseQuestion(
            setting=state.wish.choice if state.wish is not None else state.setting,
            answer=answer,
            signed=await self._signed(state, answer),
            part=self._part,
            platform=self._platform,
            allow_http=self._allow_http or state.wish is not None,
            explicit=state.explicit,
            chosen=state.wish is not None,
        )
        choice = choose(record, asked)
        if not isinstance(choice, Read):
            return choice
        if (installed := _installed_from(record, choice.url)) is not None and not state.explicit:
            return Keep(f"version {installed.version} is installed", installed=True)
        header, sha256, size = await self._identified(choice.url)
        return choose_file(record, asked, choice, header, sha256, size)

    async def _identified(self, url: str) -> Identified:
        """Return what the file at a URL is. After a failure it is fetched again only after a pause, which grows."""
        if url in self._read:
            return self._read[url]
        failed = self._failed.get(url)
        if failed is not None and trio.current_time() < failed.until:
            raise failed.again()
        failures = 1 if failed is None else failed.failures + 1
        error = MachineError(f"no answer within {LIMIT:g} s", kind=ErrorKind.TIMEOUT)
        try:
            self._read[url] = await self._catalog.identify(url)
        except MachineError as raised:
            error = raised
            raise
        except OSError as raised:
            error = MachineError(str(raised), kind=ErrorKind.UNAVAILABLE)
            raise
        finally:
            if url in self._read:
                self._failed.pop(url, None)
            else:  # it failed, or the time is over
                until = trio.current_time() + doubled(RETRY, LONGEST_PAUSE, failures)
                self._failed[url] = _Failed(error, until, failures)
        return self._read[url]

    async def _signed(self, state: _State, answer: DesiredVersion | None) -> tuple[Signed, ...] | None:
        """Return the signed releases, with those that were published since the last look if that may matter."""
        signed = await self._catalog.signed(fresh=state.explicit)
        if signed is None or answer is None or state.sought == answer.sha256:
            return signed
        if any(entry.sha256 == answer.sha256 for entry in signed):
            return signed
        signed = await self._catalog.signed(fresh=True)
        state.sought = answer.sha256
        return signed

    def _explain(self, name: str, state: _State, record: UpdateRecord, choice: ReleaseOffer | Keep | Refuse) -> None:
        """Log a decision with what it was made from, and keep the reason for which nothing is offered."""
        answer = state.answer
        source = "a person" if state.wish is not None else "the cloud" if answer is not None else "the settings"
        asked = answer.version if state.wish is None and answer is not None else None
        if isinstance(choice, ReleaseOffer):
            reason = f"version {choice.release.version} is offered"
        else:
            reason = choice.reason if isinstance(choice, Keep) else choice.problem.reason
        _log.debug(
            "decided which release to offer",
            program=name,
            decision=_DECISIONS[type(choice)],
            reason=reason,
            asked=asked or shown_url(state.wish.choice if state.wish is not None else state.setting),
            source=source,
            installed=record.slots.current.version,
        )
        kept = choice.reason if isinstance(choice, Keep) and not choice.installed else ""
        if self.kept.get(name, "") != kept:
            self.kept[name] = kept
            self._notice()

    def changes(self) -> AsyncGenerator[None, None]:
        """Yield now and after each change of `problems`, `kept` or `version_problems`.

        A slow reader misses intermediate ones.
        """
        return self._changed.values(lambda: None)

    def _note(self, name: str, problem: ConfigError | None) -> None:
        if str(self.problems.get(name)) == str(problem):
            return
        if problem is None:
            del self.problems[name]
        else:
            _log.warning("no release is offered", program=name, problem=problem.reason, remedy=problem.remedy)
            self.problems[name] = problem
        self._notice()

    def _notice(self) -> None:
        self._changed.announce()


def not_updated(name: str) -> MachineError:
    """Return the error for a program that this agent does not update."""
    return MachineError(
        f"{name} is not updated by this agent",
        kind=ErrorKind.PRECONDITION,
        remedy="install machine-agent as a service: in --dev-mode it updates machine-server only",
    )


def _installed_from(record: UpdateRecord, url: str) -> Release | None:
    """Return the release from this URL, if it is current: it need not be downloaded again."""
    return record.slots.current if record.slots.current.origin == url else None


def _load(file: Path) -> dict[str, ChosenVersion]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, ChosenVersion])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
