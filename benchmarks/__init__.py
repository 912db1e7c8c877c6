"""The figures of docs/performance.md, each set reproducible with one command."""
