"""Internal: samples of a report for people to judge, and what they found."""
