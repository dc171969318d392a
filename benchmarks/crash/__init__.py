"""What a killed process loses: real SIGKILLs at random moments, then a look at what is stored, then going on."""
