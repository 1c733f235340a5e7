"""The activity log: events of the logger `rdk.activity`, such as reconfigurations, shown at any log level."""

from __future__ import annotations

import logging
import sys
from typing import Any

from telemetry.logs.logger_names import ACTIVITY


def log_event(activity: str, event: str, **fields: Any) -> None:
    """Log an event of an activity, such as `reconfigure` `complete`; both become fields in addition to `fields`.

    Empty fields are omitted. Durations are in seconds.
    """
    event_fields = {
        "activity": activity,
        "event_": event,
        **{key: value for key, value in fields.items() if value != ""},
    }
    caller = sys._getframe(1)
    code = caller.f_code
    message = {"event": f"{activity} {event}", **event_fields}
    logging.getLogger(ACTIVITY).handle(
        logging.LogRecord(ACTIVITY, logging.INFO, code.co_filename, caller.f_lineno, message, None, None)
    )
