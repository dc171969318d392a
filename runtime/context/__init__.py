"""What a node can reach beside its input."""
