"""actorgraph: an async-first actor runtime for durable graphs.

Layers, lower ones never look up: cli and drawing; graph; run; actors; streaming and context; engine; schema; channels;
types. ARCHITECTURE.md says what each is for.
"""
