"""Pages for people: one module per area, each with `routes(cloud)`."""
