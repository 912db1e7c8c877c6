"""Converts recordings of other programs to captures: one module for each file format."""
