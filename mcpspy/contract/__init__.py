"""What a server must offer and a session must do: locks, expectations, and proofs of transparency."""
