"""What the settings and the credentials mean for the agent's own log."""

from __future__ import annotations

import msgspec

from schema.agent import Settings
from schema.document import Cloud
from telemetry.logs import Logs, Rules


def apply_to_logs(logs: Logs, settings: Settings, credentials: Cloud, *, debug: bool = False) -> None:
    """Set level and deduplication of messages, and mask the secrets of both documents in all messages from now on.

    `debug` is the option of the command line; the setting can only add to it.
    """
    advanced = settings.advanced_settings
    variables = {"secrets": list(advanced.viam_server_env.values())}  # whatever their names
    for document in (credentials, settings, variables):
        logs.masker = logs.masker.and_those_of(msgspec.to_builtins(document, str_keys=True))
    logs.set_rules(Rules(debug=debug or advanced.debug))
    logs.deduplicate(not advanced.disable_log_deduplication)
