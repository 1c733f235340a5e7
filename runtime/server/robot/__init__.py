"""RobotService, the machine-wide API."""
