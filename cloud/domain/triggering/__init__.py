"""Triggers of the cloud: events are queued with their cause, evaluated, and delivered from an outbox."""
