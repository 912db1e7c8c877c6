"""Sessions for other people: captures without secrets, and pages that open anywhere."""
