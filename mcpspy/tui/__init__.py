"""The terminal user interface; `model` and `library` hold what it shows, and know no textual."""
