"""Captures that are open to be looked at, while they grow: what people and agents browse, without a screen."""
