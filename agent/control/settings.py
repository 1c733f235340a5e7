"""The settings in force: read from the defaults file, and from the last answer of the cloud, which is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from schema import ConfigError, MachineError
from schema.agent import Settings, read_settings
from schema.decoding import parse_json
from support import ChangeSignal, RunBlocking
from support.files import replace_file

MAX_BYTES: Final = 1 << 20
"""Size of the defaults file, and of the stored answer."""

CONSENT: Final = "allow_http"
"""Key of the defaults file, next to its sections: true allows programs from `http://` URLs."""

TRUST_FIRST: Final = "trust_first_root"
"""Key of the defaults file, next to its sections: true pins the cloud's root.json at the first contact."""

_CONSENTS: Final = (CONSENT, TRUST_FIRST)


class SettingsState:
    """The settings and the problems of both documents. `run` calls functions in a worker thread."""

    def __init__(self, defaults: Path, stored: Path, run: RunBlocking) -> None:
        self.current = Settings()
        self.problems: tuple[ConfigError, ...] = ()
        self.allow_http = self.trust_first_root = False  # consents of the device, which the cloud cannot give
        self._defaults, self._stored, self._run = defaults, stored, run
        self._documents: tuple[Any, Any] = (None, None)  # of the defaults file, of the cloud
        self._own: tuple[ConfigError, ...] = ()  # problems of the files themselves
        self._changed = ChangeSignal()

    async def load(self) -> None:
        """Read both files; a file that is missing or cannot be used does not keep the agent from starting."""
        results = [await self._run(partial(_load, path)) for path in (self._defaults, self._stored)]
        self._own = tuple(problem for _, problem in results if problem is not None)
        self._read(results[0][0], results[1][0])

    async def apply(self, cloud: Mapping[str, Any]) -> bool:
        """Use the sections of an answer of the cloud, and store them; return whether something has changed.

        OSError if they cannot be stored: they are used all the same, until the next start.
        """
        if cloud == self._documents[1]:
            return False
        self._own = tuple(problem for problem in self._own if problem.path != str(self._stored))
        self._read(self._documents[0], cloud)
        await self._run(partial(replace_file, self._stored, msgspec.json.encode(cloud)))
        return True

    def changes(self) -> AsyncGenerator[Settings, None]:
        """Yield the settings now and after each change. A slow reader misses intermediate ones."""
        return self._changed.values(lambda: self.current)

    def _read(self, defaults: Any, cloud: Any) -> None:
        self._documents = (defaults, cloud)
        consents = {}
        own = defaults
        if isinstance(defaults, Mapping):
            consents = {key: defaults[key] for key in _CONSENTS if isinstance(defaults.get(key), bool)}
            own = {key: value for key, value in defaults.items() if key not in consents}
        self.allow_http = consents.get(CONSENT, False)
        self.trust_first_root = consents.get(TRUST_FIRST, False)
        self.current, problems = read_settings(own, cloud, allow_http=self.allow_http)
        self.problems = (*self._own, *problems)
        self._changed.announce()


def _load(path: Path) -> tuple[Any, ConfigError | None]:
    """Return the content of a JSON file, None if it is missing; or what is wrong with it."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, ConfigError(str(path), f"cannot be read: {error.strerror}")
    if len(data) > MAX_BYTES:
        return None, ConfigError(str(path), f"is larger than {MAX_BYTES >> 10} KiB")
    try:
        return parse_json(data), None
    except MachineError as error:
        return None, ConfigError(str(path), error.message, remedy=error.remedy)
