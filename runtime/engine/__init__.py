"""The engine: registers models, plans configurations, runs resources as graph nodes, and dispatches calls to them."""
