"""The content of the specification as data: revisions, definitions, methods, schemas."""
