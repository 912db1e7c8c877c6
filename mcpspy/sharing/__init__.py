"""Sessions for other people: captures without secrets, small captures, and pages that open anywhere."""
