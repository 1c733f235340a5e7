"""Routes for programs: reports of agents, downloads, uploads, metrics, and the push channel of machines."""
