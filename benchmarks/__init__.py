"""Benchmarks: ours against the plain alternative and the machine's own limit, in one run."""
