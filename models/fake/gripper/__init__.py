"""A simulated gripper with one sliding jaw."""
