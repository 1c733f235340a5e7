"""Pages for people: one module for each room, each with `routes(cloud)`."""
