"""Claims trials in small lots until none is left, and prints the ids it got. Arguments: store, owner, number of trials.

A program of its own because the test is about processes. It starts when a line arrives on its standard input.
"""

from __future__ import annotations

import random
import sys
import time

from orchestrator.store.opening import open_store
from tests.support.store_rows import ids, plan

url, owner, count = sys.argv[1:]
trial_ids = ids(plan(int(count)))
random.Random(owner).shuffle(trial_ids)  # in the same order, one process would run behind the other and get nothing
with open_store(url) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(0, len(trial_ids), 5):
        for trial_id in store.claim(trial_ids[start : start + 10], owner=owner, lease_s=600):
            print(trial_id, flush=True)
        time.sleep(0.02)  # who waits for SQLite's write lock asks now and then: let the other process find it free
