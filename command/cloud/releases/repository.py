"""The release repository of an organization, as a person with keys sees it: verify, change, sign, publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from command.cloud.releases import keys, signing
from command.cloud.releases.signing import Entries
from rpc.api import RELEASES
from schema import ErrorKind, MachineError
from support.files import replace_file
from uplink.releases import MAX_METADATA, ROOT, TARGETS

if TYPE_CHECKING:
    from rpc.api import ApiClient

TRIES: Final = 3
"""Attempts to publish a change, if others publish at the same time."""


class Repository:
    """The repository of one organization.

    Each of `folders` has keys, and copies of root.json and targets.json that were verified: they show later whether
    the cloud sends other or older ones.
    """

    def __init__(self, client: ApiClient, organization: str, folders: Sequence[Path], ask: keys.Ask) -> None:
        self._client, self._organization = client, organization
        self._folders, self._ask = folders, ask
        self._keys: Mapping[str, Any] | None = None

    @property
    def signers(self) -> Mapping[str, Any]:
        """The signers in the folders by key id. Raises MachineError."""
        if self._keys is None:
            self._keys = keys.load(self._folders, self._ask)
        return self._keys

    def use(self, signers: Mapping[str, Any]) -> None:
        """Sign with these instead of the keys in the folders."""
        self._keys = signers

    async def create(self, roots: Sequence[Any], targets: Sequence[Any], threshold: int) -> None:
        """Create the repository with these signers, of which `threshold` must sign. Raises MachineError.

        If the cloud kept the keys until now, the releases in it are signed again with those of people.
        """
        now = datetime.now(UTC)
        signers = {signer.public_key.keyid: signer for signer in (*roots, *targets)}
        before, listed = await self._fetch(f"{ROOT}.json"), await self._fetch(f"{TARGETS}.json")
        version = 1 if before is None else signing.version_of(before, ROOT) + 1
        root = signing.first_root(roots, targets, await self._new_online_keys(), threshold, now, version)
        entries = {} if listed is None else signing.entries_of(listed)
        await self._publish(root, signing.next_targets(listed, root, entries, signers, now))

    async def change(self, change: Callable[[Entries], Entries]) -> bool:
        """Publish targets.json with changed entries; return False if they are the same. Raises MachineError."""
        for attempt in range(TRIES):
            root, targets = await self.verified()
            before = signing.entries_of(targets)
            after = change(dict(before))
            if after == before:
                return False
            new = signing.next_targets(targets, root, after, self.signers, datetime.now(UTC))
            try:
                await self._publish(None, new)
                return True
            except MachineError as error:
                if error.kind is not ErrorKind.PRECONDITION or attempt == TRIES - 1:
                    raise
        raise AssertionError

    async def renew(
        self, *, replaced: Mapping[str, Sequence[Any]] | None = None, online: bool = False, accept_older: bool = False
    ) -> None:
        """Publish both files with new lifetimes. `replaced` are new signers by role; `online`: new keys of the cloud.

        `accept_older` accepts a targets.json that is older than the copy. Raises MachineError.
        """
        now = datetime.now(UTC)
        root, targets = await self.verified(accept_older=accept_older)
        new_online = await self._new_online_keys() if online else None
        new_root = signing.next_root(root, self.signers, now, replaced=replaced, online=new_online)
        signers = {**self.signers, **{new.public_key.keyid: new for new in (replaced or {}).get(TARGETS, ())}}
        new_targets = signing.next_targets(targets, new_root, signing.entries_of(targets), signers, now)
        await self._publish(new_root, new_targets)

    async def verified(self, *, accept_older: bool = False) -> tuple[bytes, bytes]:
        """Return root.json and targets.json of the cloud, verified with the copies, and keep them as copies."""
        root = self._copy(ROOT)
        if root is None:
            raise MachineError(
                f"there is no root.json in {', '.join(map(str, self._folders))}",
                kind=ErrorKind.PRECONDITION,
                remedy="give the folder of `machine cloud releases init` with --keys, or copy its root.json there",
            )
        while True:
            following = await self._fetch(f"{signing.version_of(root, ROOT) + 1}.{ROOT}.json")
            if following is None:
                break
            signing.check_root(root, following)
            root = following
        if await self._fetch(f"{signing.version_of(root, ROOT)}.{ROOT}.json") != root:
            raise MachineError(
                f"the cloud does not have this root.json, version {signing.version_of(root, ROOT)}",
                kind=ErrorKind.PERMISSION,
                remedy="give the folder of this organization with --keys; if it is, the cloud was restored from an "
                "older backup, or may have been taken over",
            )
        targets = await self._fetch(f"{TARGETS}.json")
        if targets is None:
            raise MachineError("the cloud has no targets.json", kind=ErrorKind.NOT_FOUND)
        before = self._copy(TARGETS)
        signing.check_targets(
            root, targets, 0 if before is None or accept_older else signing.version_of(before, TARGETS)
        )
        self._keep(root, targets)
        return root, targets

    async def _new_online_keys(self) -> Mapping[str, Any]:
        created = await self._call("create_release_keys")
        return {key["role"]: signing.public_key(key["keyid"], key["public"]) for key in created}

    async def _publish(self, root: bytes | None, targets: bytes) -> None:
        await self._call("update_release_metadata", root_json=root, targets_json=targets)
        self._keep(root, targets)

    async def _fetch(self, name: str) -> bytes | None:
        try:
            content: bytes = await self._call("get_release_metadata", name=name)
        except MachineError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return None
            raise
        if len(content) > MAX_METADATA:
            raise MachineError(
                f"the cloud answered a request for {name} with {len(content)} bytes", kind=ErrorKind.UNAVAILABLE
            )
        return content

    async def _call(self, method: str, **arguments: Any) -> Any:
        return await self._client.call(RELEASES, "", method, organization_id=self._organization, **arguments)

    def _copy(self, role: str) -> bytes | None:
        """Return the newest copy of a file."""
        copies = [path.read_bytes() for folder in self._folders if (path := folder / f"{role}.json").exists()]
        return max(copies, key=lambda content: signing.version_of(content, role), default=None)

    def _keep(self, root: bytes | None, targets: bytes) -> None:
        for folder in self._folders:
            for role, content in ((ROOT, root), (TARGETS, targets)):
                path = folder / f"{role}.json"
                if content is not None and (not path.exists() or path.read_bytes() != content):
                    replace_file(path, content)
