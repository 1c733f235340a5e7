"""The arm `wrapper_arm`: another arm, with the kinematics of a file."""
