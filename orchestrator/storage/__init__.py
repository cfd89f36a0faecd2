"""Where the files of trials, reports and corpora are: a folder or an object store."""
