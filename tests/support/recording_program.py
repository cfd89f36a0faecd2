"""Records one outcome after another until it is killed. Arguments: store, number of trials.

A program of its own because the test kills it. It prints the id of each trial once it is recorded.
"""

from __future__ import annotations

import sys

import numpy as np

from orchestrator.store.opening import open_store
from tests.support.store_rows import RUN, ids, outcome, plan

url, trials = sys.argv[1:]
with open_store(url) as store:
    run_id = store.begin_run(RUN)
    for trial_id in ids(plan(int(trials))):
        store.record(outcome(trial_id, epochs=50), run_id=run_id, spectrum=np.arange(2_000.0))
        print(trial_id, flush=True)
