"""The metadata of signed releases over HTTP, from the machine's own cloud."""

from __future__ import annotations

from urllib.parse import quote

from agent.releases.web import Web
from schema import ErrorKind, MachineError
from uplink import read_up_to
from uplink.releases import METADATA_PATH


class Transport:
    """Fetches metadata for the machine with the id `part`, unverified: `agent.releases.trust` verifies it."""

    def __init__(self, web: Web, part: str) -> None:
        self._web, self._part = web, part

    async def fetch(self, name: str, limit: int) -> bytes | None:
        """Return a metadata file such as `3.snapshot.json`; None if the cloud has none. The caller limits the time.

        Reads little more than `limit` bytes: a longer result is to be refused. Raises MachineError.
        """
        path = METADATA_PATH.format(part=quote(self._part, safe=""), name=quote(name, safe=""))
        try:
            async with self._web.get(path) as response:
                if response.status != 200:
                    raise MachineError(
                        f"the cloud answered a request for {name} with HTTP status {response.status}",
                        kind=ErrorKind.UNAVAILABLE,
                        remedy="the request is repeated",
                    )
                return await read_up_to(name, response, limit)
        except MachineError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise
