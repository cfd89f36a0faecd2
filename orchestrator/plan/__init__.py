"""Which trials a study has, their identity, and what they will cost."""
