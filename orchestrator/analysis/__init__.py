"""From results to numbers: pure functions, a file a question."""
