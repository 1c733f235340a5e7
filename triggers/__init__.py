"""Triggers: their configuration, evaluation of events, and delivery of notifications.

Evaluation, messages, address checks and retries use neither clock nor network; only `send` and `smtp` use the network.
"""
