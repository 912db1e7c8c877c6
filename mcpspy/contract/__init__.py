"""What a server must offer and what a session must do: locks, expectations, and proofs of transparency."""
