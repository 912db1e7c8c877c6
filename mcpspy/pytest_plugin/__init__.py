"""The pytest plugin: captures as servers and clients in tests, and sessions checked against expectations."""
