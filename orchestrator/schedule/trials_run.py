"""Run of a sweep's trials, from Ray's start to the last result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import replace

from orchestrator.cluster import (
    check_cluster,
    check_machines,
    cluster_question,
    connected,
    interruptible,
    machine_resources,
    nodes,
    slots_of,
)
from orchestrator.guard import watched
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.driver import Driver
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.schedule.tune import fit
from orchestrator.store import LeaseKeeper, PlannedTrial, expire_dead_owners, this_owner
from orchestrator.watch import Several, SweepMetrics


def run_trials(trials: Sequence[PlannedTrial], work: StudyWork) -> RunSummary:
    """Run registered trials that are not done; return when all have ended.

    Waits for trials that other drivers run. Trials in `work.unmeasured` are only measured, and
    `work.source` may add trials. After a signal or stop request, the next run resumes trials from
    their checkpoints.

    Raises UserError if no cluster answers, Ray cannot start, a machine cannot run the trials, or
    the disk or store fails. Then no trial stays claimed.
    """
    store, options = work.store, work.options
    check_cluster(options.address)
    expire_dead_owners(store)
    owner = this_owner()
    with (
        watched(),
        interruptible() as interrupt,
        connected(options, work.listener.note),
        LeaseKeeper(store, owner) as keeper,
        options.storage.watched() as check_storage,
        # Each machine of a cluster uses this marker to check that it sees the same storage.
        options.storage.marked() if options.address else nullcontext("") as marker,
    ):
        machines, late_machines = machine_resources(nodes()), None
        slots = slots_of(list(machines.values()), options)
        if options.address is not None:
            configs = [trial.validated for trial in trials]
            question = cluster_question(
                options, marker, configs, corpus=work.corpus, measurements=work.measurements
            )
            late_machines = check_machines(question, lambda: interrupt.requested)
        work = replace(work, listener=Several(work.listener, SweepMetrics(work.study, store)))
        placement = Placement(options, work.corpus, machines)
        dispatcher = Dispatcher(trials, work, owner, slots=slots)
        driver = Driver(work, dispatcher, placement, interrupt, keeper, check_storage)
        with closing(dispatcher):
            fit(driver, work.job, title=work.study.variant, late_machines=late_machines)
    return RunSummary(
        interrupted=interrupt.requested, measurement_failures=dispatcher.measurement_failures
    )
