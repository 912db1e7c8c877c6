"""What is made to be given to others: captures without secrets, and pages."""
