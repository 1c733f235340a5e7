"""`machine cloud rollouts`."""
