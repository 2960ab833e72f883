"""What data and runs of any size cost, in seconds and peak memory, of many dialogues made of a few."""
