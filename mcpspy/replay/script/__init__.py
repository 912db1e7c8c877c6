"""A capture as a script of turns: parsed, loaded, and with its issued values replaced."""
