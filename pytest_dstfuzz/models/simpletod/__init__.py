"""SimpleTOD, a causal language model that generates the belief state (arXiv 2005.00796)."""
