"""Internal: Metamorphic relations between the predictions on related inputs."""
