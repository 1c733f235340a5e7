"""Build the machine document from a message of the cloud. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rpc.access import API_KEY


class InvalidMessage(ValueError):
    """A message of the push channel has the wrong structure."""


def document_of(message: Mapping[str, Any], own: Mapping[str, Any]) -> bytes:
    """Return the document in a message of the push channel, as a file would contain it.

    `own` is the content of the credentials file: its `cloud` section takes precedence over that of the message, and its
    `network` section applies unless the message has one. The keys of the cloud become handlers of `auth`, as digests.
    Raises InvalidMessage.
    """
    document, cloud = message.get("document"), message.get("cloud") or {}
    keys, operators = message.get("keys") or {}, message.get("operators") or []
    if not isinstance(document, dict) or not isinstance(cloud, dict) or not isinstance(keys, dict):
        raise InvalidMessage("the message has no valid configuration: expected objects in document, cloud and keys")
    if not isinstance(operators, list):
        raise InvalidMessage("the message has no valid roles: expected a list in operators")
    network = {"network": own["network"]} if "network" in own else {}
    whole = {**network, **document, "cloud": {**cloud, **own["cloud"]}, "revision": str(message.get("revision", ""))}
    if keys:
        whole["auth"] = _with_operators(_with_keys(document.get("auth"), keys), operators)
    return json.dumps(whole).encode()


def _with_operators(auth: Any, operators: list[Any]) -> Any:
    """Add the keys of operators to the `auth` section; one with the wrong structure is left to the schema check."""
    if not isinstance(auth, dict) or not isinstance(auth.get("operators", []), list):
        return auth
    return {**auth, "operators": [*auth.get("operators", []), *operators]}


def _with_keys(auth: Any, keys: Mapping[str, str]) -> Any:
    """Add the cloud's keys to the `auth` section; a section with the wrong structure is left to the schema check."""
    if auth is None:
        auth = {}
    handlers = auth.get("handlers", []) if isinstance(auth, dict) else None
    if not isinstance(handlers, list):
        return auth
    merged, added = [], False
    for handler in handlers:
        config = handler.get("config") if isinstance(handler, dict) and handler.get("type") == API_KEY else None
        if not added and isinstance(config, dict):
            both = {**keys, **config}
            if isinstance(config.get("keys"), list):
                both["keys"] = [*config["keys"], *(key for key in keys if key not in config["keys"])]
            handler, added = {**handler, "config": both}, True
        merged.append(handler)
    if not added:
        merged.append({"type": API_KEY, "config": dict(keys)})
    return {**auth, "handlers": merged}
