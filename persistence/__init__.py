"""Persistence of checkpoints: contracts, serialisation, one writer, a backend each. Knows nothing of graphs."""
