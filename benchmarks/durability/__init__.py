"""What each durability costs: latency and throughput by mode, database, state size, node time and concurrent runs."""
