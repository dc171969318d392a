"""How fast, how small, how steady: this engine beside LangGraph, in one process. See README.md."""
