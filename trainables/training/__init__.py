"""Training: batches, averaged SGD, validation, and a loop that can be stopped after any step."""
