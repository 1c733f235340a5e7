"""A simulated arm with six axes, or with the kinematics of a file."""
