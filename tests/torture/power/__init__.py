"""Simulated power loss: what a real run asked the kernel to do, and the disks that a loss may leave of it."""
