"""The gates of the proxy itself, for the bodies that it has to change."""
