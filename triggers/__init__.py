"""Triggers: what a configuration asks to be told about, whether something that happened is that, and how it is told.

Evaluation, messages, addresses and retries are pure; `send` and `smtp` are the only modules that reach out.
"""
