"""Triggers: their configuration, evaluation of events, and delivery of notifications.

Evaluation, messages, address checks and retries use neither clock nor network; only `send` and `smtp` use the network.

Public, in the order in which to read them:

* `events`: Events of a part, their location, and the firing of a trigger
* `operators`: Operators of conditions: one row of OPERATORS each, with everything that is specific to the operator
* `retry`: Outcome of delivery attempts and schedule of retries
* `ssrf`: Check of webhook addresses against server-side request forgery (SSRF)
* `document`: Decoder for the `triggers` of a configuration
* `smtp`: Delivery of emails through an SMTP server, from a dedicated thread
* `cooldown` (module): Minimum time between notifications to a target
* `evaluate`: Evaluation of readings against conditions and of events against triggers, with explanations
* `webhook`: HTTP requests to webhooks
* `mail_text`: Notification emails, as text and HTML
* `send`: Delivery of webhooks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triggers import cooldown as cooldown
    from triggers.document import CONDITIONAL as CONDITIONAL
    from triggers.document import DATA as DATA
    from triggers.document import EMAIL as EMAIL
    from triggers.document import LOGS as LOGS
    from triggers.document import MAX_TARGETS as MAX_TARGETS
    from triggers.document import OFFLINE as OFFLINE
    from triggers.document import ONLINE as ONLINE
    from triggers.document import OWNERS as OWNERS
    from triggers.document import WEBHOOK as WEBHOOK
    from triggers.document import Examined as Examined
    from triggers.document import Notification as Notification
    from triggers.document import Trigger as Trigger
    from triggers.document import examine_triggers as examine_triggers
    from triggers.document import is_address as is_address
    from triggers.document import split_method as split_method
    from triggers.evaluate import Explanation as Explanation
    from triggers.evaluate import explain as explain
    from triggers.evaluate import fires as fires
    from triggers.events import Firing as Firing
    from triggers.events import Ingested as Ingested
    from triggers.events import Logged as Logged
    from triggers.events import LogLine as LogLine
    from triggers.events import Presence as Presence
    from triggers.events import TabularReading as TabularReading
    from triggers.events import TrainingEnded as TrainingEnded
    from triggers.events import TriggerEvent as TriggerEvent
    from triggers.events import Where as Where
    from triggers.mail_text import mail as mail
    from triggers.mail_text import mail_about_alerts as mail_about_alerts
    from triggers.mail_text import mail_about_training as mail_about_training
    from triggers.operators import OPERATORS as OPERATORS
    from triggers.retry import MAX_WAIT as MAX_WAIT
    from triggers.retry import AttemptOutcome as AttemptOutcome
    from triggers.retry import next_try as next_try
    from triggers.send import deliver as deliver
    from triggers.smtp import Mailer as Mailer
    from triggers.smtp import SmtpSettings as SmtpSettings
    from triggers.ssrf import NOTHING as NOTHING
    from triggers.ssrf import Allow as Allow
    from triggers.webhook import TRAINING as TRAINING
    from triggers.webhook import WebhookRequest as WebhookRequest
    from triggers.webhook import about_training as about_training
    from triggers.webhook import alert_request as alert_request
    from triggers.webhook import signed_request as signed_request
    from triggers.webhook import unsigned_request as unsigned_request
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "events": [
                "Firing",
                "Ingested",
                "LogLine",
                "Logged",
                "Presence",
                "TabularReading",
                "TrainingEnded",
                "TriggerEvent",
                "Where",
            ],
            "operators": ["OPERATORS"],
            "retry": ["MAX_WAIT", "AttemptOutcome", "next_try"],
            "ssrf": ["NOTHING", "Allow"],
            "document": [
                "CONDITIONAL",
                "DATA",
                "EMAIL",
                "LOGS",
                "MAX_TARGETS",
                "OFFLINE",
                "ONLINE",
                "OWNERS",
                "WEBHOOK",
                "Examined",
                "Notification",
                "Trigger",
                "examine_triggers",
                "is_address",
                "split_method",
            ],
            "smtp": ["Mailer", "SmtpSettings"],
            "evaluate": ["Explanation", "explain", "fires"],
            "webhook": [
                "TRAINING",
                "WebhookRequest",
                "about_training",
                "alert_request",
                "signed_request",
                "unsigned_request",
            ],
            "mail_text": ["mail", "mail_about_alerts", "mail_about_training"],
            "send": ["deliver"],
        },
        modules=["cooldown"],
    )
