"""Triggers of the cloud: what happened is queued with what caused it, evaluated, and delivered from an outbox."""
