"""A base that is driven by what movement sensors measure."""
