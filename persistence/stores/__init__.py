"""What the stores share, so that a program cannot tell them apart: rules, and the doors to them."""
