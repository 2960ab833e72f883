"""SimpleTOD, a causal language model that writes the belief state (arXiv 2005.00796)."""
