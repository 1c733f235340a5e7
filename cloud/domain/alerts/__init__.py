"""Alerts: rules about machines, the state of each rule at each machine, and notifications of changes."""
