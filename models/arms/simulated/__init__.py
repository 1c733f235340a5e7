"""The arm `simulated`: its joints take time to move."""
