"""Internal: Multi-PDQN: an agent that learns which perturbations change a tracker's mind."""
