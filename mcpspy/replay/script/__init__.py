"""A capture as a script of turns: read, loaded, and with its issued values replaced."""
