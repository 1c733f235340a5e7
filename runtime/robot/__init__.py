"""The machine-wide RobotService."""
