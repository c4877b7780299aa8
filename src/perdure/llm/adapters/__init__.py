"""Who speaks to a model: alternatives that know nothing of each other."""
