"""What the specification says, as data: revisions, definitions, methods, schemas."""
