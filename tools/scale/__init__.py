"""What data and runs of any size cost: many dialogues made of the shipped ones, and peak memory."""
