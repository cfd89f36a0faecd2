"""Studies, one file each: trials, analyses and the published values to compare with."""
