"""A message as a person reads it: text with its line breaks, JSON in strings unfolded, media as type and size."""
