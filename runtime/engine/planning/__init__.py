"""Plans the resources that should exist from a document, and explains why one does not."""
