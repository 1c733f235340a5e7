"""The task that runs network management: observes, decides, and applies."""
