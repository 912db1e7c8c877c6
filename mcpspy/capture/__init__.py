"""The capture: its place, its writer, its readers. Empty, so that `wrap` imports no more than it needs."""
