"""Superstep mathematics, pure: what is due, what its writes make of the state, what a checkpoint is."""
