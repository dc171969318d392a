"""What durability costs, and what it saves: this engine's modes on each database, beside its peers, on your machine.

    python -m benchmarks                    a short sweep, about two minutes
    python -m benchmarks --full             every question at full size, about twelve minutes
    python -m benchmarks durability ...     modes, databases and loads of your choice; --help tells them
    python -m benchmarks --only NAME        one question (repeat the option for more)
    python -m benchmarks --json now.json    keep the figures; --compare old.json says what became of older ones
    python -m benchmarks durability --graph app:graph --input '{"text": "hello"}'       a graph of your own
    python -m benchmarks report now.json    kept figures as one HTML page with pictures; --png FOLDER for files
    python -m benchmarks readme --write     README.md's table from benchmarks/measured.json
    python -m benchmarks.profile NAME       where a superstep's time goes

Method. Contenders of a case take turns, A B A B, after a warm-up that is thrown away, so that a slow minute of the
machine meets all of them. Each sample opens its own event loop and compiles its graph; opening and closing savers is
not timed. The heap is collected and frozen before a sample, and the collector stays on: an engine pays for its own
garbage. Tables show medians of the repeats, and as noise how far a repeat lay from its median at most. A ratio is taken
between repeats that ran next to each other, then summarised. The result of every run is checked; who fails gets no
figure, is reported, and makes the exit code 1.

Latency is what a superstep adds to its node: from the node's end to the next node's start, or to the result. Throughput
is supersteps by whole time, nodes included. A state of n bytes is a text of n bytes that every node replaces.

Acknowledged means on disk for every contender: SQLite with a write-ahead log and ``synchronous = FULL``, PostgreSQL
with its defaults, Valkey with ``appendfsync always``. The servers come from wheels and share the processor with who is
measured; ``--url`` names one of your own. Raw limits move the bytes that a superstep stores, in the same run, without
an engine. Peers run with what their makers recommend, printed above each report. On a tmpfs an fsync is free:
``--directory`` chooses the disk.

Before and after each question two yardsticks are taken: a loop in Python, and an fsync of a few bytes. Comparing calls
a figure slower only if its repeats lie clear of the old ones, by more than half the range of either, and if it fell
behind by more than the yardsticks did: else it is noise, or the machine.

The machine is kept with the figures: processor, load, memory, filesystem, versions, commit. Figures
taken while the machine does something else are worth little: look at the load, and at the noise.
"""
