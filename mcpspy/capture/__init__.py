"""The capture: location, writer and readers. Empty, so that `wrap` imports no more than it needs."""
