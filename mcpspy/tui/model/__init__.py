"""What the screens show, without textual."""
