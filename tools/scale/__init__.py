"""What data of any size costs: many dialogues made of the shipped ones, and peak memory."""
