"""Controls for a running session: breakpoints and held frames."""
