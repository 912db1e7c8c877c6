"""What the specification says as data (revisions, definitions, methods, schemas), and what clients accept of it."""
