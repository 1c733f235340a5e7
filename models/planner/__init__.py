"""Plans motions of an arm around obstacles, in a process of its own."""
