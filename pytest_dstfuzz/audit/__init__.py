"""Do violations keep the meaning? Samples of a report for people to judge, and what they found."""
