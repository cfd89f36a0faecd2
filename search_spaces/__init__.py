"""One short file a study: which trials, which analyses, which published values beside them."""
