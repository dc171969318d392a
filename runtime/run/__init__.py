"""One run, from what is stored to what is handed out."""
