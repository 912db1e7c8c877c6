"""What counts as a secret, and how secrets are kept out of captures."""
