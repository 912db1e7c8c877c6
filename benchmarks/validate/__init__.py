"""The cost of validating messages against the shapes of their revision."""
