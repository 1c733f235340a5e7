"""Frames, poses and kinematics."""
