"""Rollouts in stages: a revision of a fragment, or a version of a program, reaches some machines before others."""
