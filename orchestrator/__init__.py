"""Plan, schedule, record, analyse and report the trials of a study."""
