"""Every door gives the same answer: one table of requests, run through each door."""
