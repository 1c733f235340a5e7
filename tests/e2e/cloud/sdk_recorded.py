"""machine-cloud that also records every call that it answers: `python -m tests.e2e.cloud.sdk_recorded OPTIONS`."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import Any

from grpclib.const import Handler

import cloud.server.app
from cloud.server.cli import main
from cloud.services.target import CloudRouter
from rpc.server_call import ServerCall
from tests.e2e.cloud.sdk_calls import FILE, Call


class Recorded(CloudRouter):
    """A CloudRouter that records the results of its calls."""

    def get(self, path: str, /) -> Handler | None:
        handler = super().get(path)
        return handler and handler._replace(func=partial(_noted, handler.func))


async def _noted(answer: Any, call: ServerCall) -> None:
    call.ended = _note
    await answer(call)


def _note(call: ServerCall) -> None:
    with open(os.environ[FILE], "a") as file:
        file.write(json.dumps(Call(call.method.strip("/"), call.status, call.sent)) + "\n")


if __name__ == "__main__":
    cloud.server.app.CloudRouter = Recorded  # type: ignore[misc]
    main()
