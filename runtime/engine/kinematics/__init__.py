"""Kinematics of arms: file formats, arms by name, Jacobians and inverse kinematics. Pure."""
