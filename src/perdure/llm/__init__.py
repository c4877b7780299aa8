"""Language models: what one promises, who speaks to one, what it may cost, what it said before."""
