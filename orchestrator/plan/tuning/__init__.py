"""Studies that choose their trials by the results of earlier ones: stages, suggestions, early
stopping."""
