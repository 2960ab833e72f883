"""Internal: How the agent learns: the environment, Multi-PDQN, replay, training runs."""
