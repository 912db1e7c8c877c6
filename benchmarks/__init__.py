"""The benchmarks behind the figures of docs/performance.md. One command reproduces each set of figures."""
