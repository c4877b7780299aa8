"""Proofs that an entry is in the log: keys, signed checkpoints, inclusion proofs."""
