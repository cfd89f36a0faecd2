"""One run of a study: what is missing, run it, recover what an earlier run left, report."""
