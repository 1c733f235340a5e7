"""Events from other replicas, received from PostgreSQL with LISTEN on a connection whose socket Trio waits for."""

from __future__ import annotations

import random
from typing import Any, Final, NoReturn

import psycopg
import structlog
import trio

from cloud.store.events import Events
from cloud.store.session import channel, connected
from schema import MachineError
from support import DoublingDelay, Worker

FIRST_DELAY: Final = 0.1  # seconds before the second attempt to connect; doubled each time, with jitter
MAX_DELAY: Final = 5.0

_log = structlog.get_logger("cloud.database")


async def follow(url: str, replica: str, events: Events, *, task_status: trio.TaskStatus[None]) -> NoReturn:
    """Forward the events of replicas other than `replica` to `events`, until cancelled; ready when listening.

    MachineError if the first connection fails. After a lost connection is restored, all listeners are notified with
    EVERY.
    """
    worker = Worker("database listener")
    async with worker.opened():
        connection = await worker.run(lambda: _listening(url))
        task_status.started()
        while True:
            try:
                await _hear(connection, replica, events)
            except psycopg.OperationalError as error:
                _log.warning("the connection to the database was lost", reason=str(error).strip())
            finally:
                connection.close()
            connection = await _reconnected(worker, url)
            _log.info("the connection to the database was restored")
            events.notify_all()


async def _reconnected(worker: Worker, url: str) -> Any:
    delay = DoublingDelay(FIRST_DELAY, MAX_DELAY)
    while True:
        try:
            return await worker.run(lambda: _listening(url))
        except MachineError:
            await trio.sleep(delay.next() * random.uniform(0.5, 1.0))


def _listening(url: str) -> Any:
    connection = connected(url)
    try:
        connection.execute(f'LISTEN "{channel(connection)}"')
    except psycopg.Error as error:
        connection.close()
        raise MachineError(f"the events of the database cannot be received: {error}") from error
    return connection


async def _hear(connection: Any, replica: str, events: Events) -> NoReturn:
    """Forward events until the connection is lost, which raises psycopg.OperationalError."""
    pg_connection = connection.pgconn
    while True:
        while (notification := pg_connection.notifies()) is not None:
            sender, topic, subject = notification.extra.decode().split("\n", 2)
            if sender != replica:
                events.notify(topic, subject)
        await trio.lowlevel.wait_readable(connection.fileno())
        pg_connection.consume_input()
