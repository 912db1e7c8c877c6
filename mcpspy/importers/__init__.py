"""What other programs recorded, as captures: one module for each form of file."""
