"""Internal: training of the agent: environment, Multi-PDQN, replay memory and runs."""
