"""Studies whose trials depend on earlier results: stages, suggestions, early stopping."""
