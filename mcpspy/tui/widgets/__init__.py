"""Parts of the screen that several screens use."""
