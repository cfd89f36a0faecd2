"""A trial's files: written whole or not at all, by one worker at a time."""
