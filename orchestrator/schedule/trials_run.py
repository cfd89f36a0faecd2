"""A sweep's trials, from a connection to Ray to the last result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from orchestrator.cluster import (
    Interrupt,
    RunOptions,
    address_of,
    check_cluster,
    check_machines,
    check_options,
    connected,
    machine_resources,
    marked,
    nodes,
)
from orchestrator.schedule.claims import Claims
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.driver import Driver
from orchestrator.schedule.placement import Placement, configs_of
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.steering import Pool, Steering
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.schedule.tune import LateMachines, fit
from orchestrator.store import LeaseKeeper, PlannedTrial, Store, expire_dead_owners, this_owner
from orchestrator.watch import Listener, Several, SweepMetrics
from orchestrator.worker import Job, TrialFunctions

REAL_FUNCTIONS = TrialFunctions()


def run_trials(
    trials: Sequence[PlannedTrial],
    *,
    store: Store,
    run_id: int,
    options: RunOptions,
    work: StudyWork,
    listener: Listener,
    functions: TrialFunctions = REAL_FUNCTIONS,
) -> RunSummary:
    """Run trials that are registered in `store` and not done, and return when every one of them has ended.

    Those in `work.lacking` are done already: they are measured, not trained. Trials that `work.source` gives follow,
    and requests to stop the study or a trial reach this sweep. Machines may come and go. `functions` are for tests.
    SIGINT and SIGTERM end the sweep early: what ran is planned again and goes on from its checkpoint next time, and
    what was measured is kept. Trials that another driver runs are waited for. Raises UserError for an address where no
    cluster is, a Ray that cannot start, as `check_machines` does, and for a disk or store that can no longer be
    written; no trial stays claimed then.
    """
    if not trials and work.source is None:
        return RunSummary()
    check_options(options)
    check_cluster(options.address)
    expire_dead_owners(store)
    owner = this_owner()
    with (
        Interrupt() as interrupt,
        connected(options, listener.note),
        LeaseKeeper(store, owner) as keeper,
        marked(options) as marker,
    ):
        configs = configs_of(trials)
        checked = check_machines(
            options,
            marker,
            configs,
            lambda: interrupt.requested,
            corpus=work.corpus,
            measurements=work.measurements,
        )
        placement = Placement(options, work.corpus, checked.resources)
        metrics = None if work.study is None else SweepMetrics(work.study, store)
        told = listener if metrics is None else Several(listener, metrics)
        dispatcher = Dispatcher(
            trials,
            recorder=Recorder(store, options, run_id),
            claims=Claims(store, owner),
            options=options,
            work=work,
            listener=told,
            slots=checked.slots,
        )
        steering = Steering(
            dispatcher,
            told,
            store=store,
            run_id=run_id,
            work=work,
            pool=lambda: _pool(placement),
            layer_files=options.runtime.layer_files,
        )
        driver = Driver(dispatcher, steering, placement, interrupt=interrupt, keeper=keeper, metrics=metrics)
        job = Job(options=options.for_workers(), measurements=work.measurements, functions=functions)
        title = "trials" if work.study is None else work.study.variant
        late = None if options.address is None else LateMachines(checked.question, frozenset(checked.resources))
        with closing(dispatcher):
            fit(driver, options, job, title=title, late=late)
    return RunSummary(interrupted=interrupt.requested, not_measured=dispatcher.not_measured)


def _pool(placement: Placement) -> Pool:
    machines = nodes()
    placement.update(machine_resources(machines))
    return placement.slots, set(map(address_of, machines))
