"""Proof that the cloud answers, through one interface or any."""
