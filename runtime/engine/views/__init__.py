"""Plain data that a machine shows: its status, and data for pages and RobotService."""
