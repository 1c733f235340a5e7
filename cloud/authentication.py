"""Who calls the cloud: keys and parts' secrets, looked up in memory, kept true by the database's events."""

from __future__ import annotations

import base64
from typing import Final

import trio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cloud.author import KEY, PART
from cloud.store.events import Events
from cloud.store.sql import Sql, Store, inserted
from rpc.auth import Authenticator, Credential
from rpc.tokens import Signer
from schema.errors import ErrorKind, MachineError

RETRY: Final = 1.0  # seconds until the keys are read again from a database that is away
_SETTING: Final = "signing key"


class CloudAuthenticator(Authenticator):
    """As Authenticator, with what the database knows. A key that was rotated or deleted is void at the next call."""

    def __init__(self, signer: Signer, store: Store, events: Events, names: tuple[str, ...] = ("localhost",)) -> None:
        super().__init__(signer, audience=names)
        self._store = store
        self._events = events

    @property
    def enabled(self) -> bool:
        """Nobody calls the cloud without a key."""
        return True

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Follow the database until cancelled; ready when all keys are known.

        While the database is away those count that were known last.
        """
        with self._events.listening("key") as news:
            await self.load()
            task_status.started()
            while True:
                await news.all()
                await self._load_when_it_is_there()

    async def _load_when_it_is_there(self) -> None:
        while True:
            try:
                return await self.load()
            except MachineError as error:
                if error.kind is not ErrorKind.UNAVAILABLE:
                    raise
            await trio.sleep(RETRY)

    async def load(self) -> None:
        """Take what the database knows now."""
        self.configure(await self._store.read(_credentials))


def _credentials(sql: Sql) -> list[Credential]:
    keys = sql.rows("SELECT id, digest FROM keys")
    secrets = sql.rows("SELECT part_id, secret FROM part_secrets")
    return [
        *(Credential(KEY, row["id"], row["digest"]) for row in keys),
        *(Credential(PART, row["part_id"], row["secret"]) for row in secrets),
    ]


async def open_signer(store: Store) -> Signer:
    """The key that signs tokens, made at the first start and kept in the database: replicas share it."""

    def kept(sql: Sql) -> str:
        row = sql.row("SELECT value FROM settings WHERE name = ?", _SETTING)
        if row is None:
            made = Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
            )
            inserted(sql, "settings", {"name": _SETTING, "value": base64.b64encode(made).decode()})
            return base64.b64encode(made).decode()
        return str(row["value"])

    raw = base64.b64decode(await store.write(kept))
    return Signer(Ed25519PrivateKey.from_private_bytes(raw))
