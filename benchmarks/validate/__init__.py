"""What judging messages by the shapes of their revision costs."""
