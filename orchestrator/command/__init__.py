"""What is typed and answered: the only room that knows the command line."""
