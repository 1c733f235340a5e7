"""From what the cloud says to the document that the machine follows: pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rpc.auth import API_KEY


class NotAMessage(ValueError):
    """What came is not what a cloud says."""


def document_of(message: Mapping[str, Any], own: Mapping[str, Any]) -> bytes:
    """The document of a message of the push channel, as a file would hold it.

    `own` is what the credentials file holds: nothing of the cloud replaces what its `cloud` section says, and its
    `network` section counts unless the cloud's configuration has one. The keys of the cloud become handlers of `auth`,
    as digests. Raises NotAMessage.
    """
    document, cloud = message.get("document"), message.get("cloud") or {}
    keys = message.get("keys") or {}
    if not isinstance(document, dict) or not isinstance(cloud, dict) or not isinstance(keys, dict):
        raise NotAMessage("the cloud sent no configuration")
    network = {"network": own["network"]} if "network" in own else {}
    whole = {**network, **document, "cloud": {**cloud, **own["cloud"]}, "revision": str(message.get("revision", ""))}
    if keys:
        whole["auth"] = _with_keys(document.get("auth"), keys)
    return json.dumps(whole).encode()


def _with_keys(auth: Any, keys: Mapping[str, str]) -> Any:
    """The `auth` section with the cloud's keys among its own; one of a wrong shape is left to the schema."""
    if auth is None:
        auth = {}
    handlers = auth.get("handlers", []) if isinstance(auth, dict) else None
    if not isinstance(handlers, list):
        return auth
    merged, done = [], False
    for handler in handlers:
        config = handler.get("config") if isinstance(handler, dict) and handler.get("type") == API_KEY else None
        if not done and isinstance(config, dict):
            both = {**keys, **config}
            if isinstance(config.get("keys"), list):
                both["keys"] = [*config["keys"], *(one for one in keys if one not in config["keys"])]
            handler, done = {**handler, "config": both}, True
        merged.append(handler)
    if not done:
        merged.append({"type": API_KEY, "config": dict(keys)})
    return {**auth, "handlers": merged}
