"""A sweep's trials, from a connection to Ray to the last result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from orchestrator.cluster.connection import check_cluster, connected
from orchestrator.cluster.interrupt import Interrupt
from orchestrator.cluster.machines import Checked, address_of, check_machines, marked, nodes, resources
from orchestrator.cluster.resources import check_options
from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.dispatcher import Dispatcher, Source
from orchestrator.schedule.placement import Placement, configs_of
from orchestrator.schedule.steering import Followed, Pool, Steering
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.schedule.tune import fit
from orchestrator.schedule.tune_link import Bridge, Watch
from orchestrator.store.lease import LeaseKeeper, expire_dead_owners
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener, Several
from orchestrator.watch.ray_metrics import SweepMetrics
from orchestrator.worker.pack_run import Job, RunTrial


def run_trials(
    trials: Sequence[PlannedTrial],
    *,
    store: Store,
    run_id: int,
    owner: str,
    options: RunOptions,
    work: StudyWork,
    listener: Listener,
    run_trial: RunTrial | None = None,
    source: Source | None = None,
    followed: Followed | None = None,
) -> RunSummary:
    """Run trials that are registered in `store` and not done, and return when every one of them has ended.

    With a `source`, trials follow that it gives as results come in, until it has no more. With `followed`, requests to
    stop its study or a trial reach this sweep, and trials that are added to it run, too. Machines may come and go.
    `owner` is `this_owner()`. `run_trial` must be importable in a worker; None is the real one.
    SIGINT and SIGTERM end the sweep early: what ran is planned again and goes on from its checkpoint next time. Trials
    that another driver runs are waited for. Raises UserError for an address where no cluster is, a Ray that cannot
    start, as `check_machines` does, and for a disk or store that can no longer be written; no trial stays claimed then.
    """
    if not trials and source is None:
        return RunSummary()
    check_options(options)
    check_cluster(options.address)
    expire_dead_owners(store)
    with (
        Interrupt() as interrupt,
        connected(options, listener.note),
        LeaseKeeper(store, owner) as keeper,
        marked(options) as marker,
    ):
        checked = check_machines(
            options,
            marker,
            configs_of(trials),
            lambda: interrupt.requested,
            corpus=work.corpus,
            measurements=work.measurements,
        )
        placement = Placement(options, work.corpus, checked.resources)
        told, watch = _with_metrics(listener, work.study, store)
        dispatcher = Dispatcher(
            trials,
            store=store,
            run_id=run_id,
            owner=owner,
            options=options,
            seconds_per_trial=work.seconds_per_trial,
            listener=told,
            slots=checked.slots,
            source=source,
        )
        steering = Steering(
            dispatcher,
            interrupt,
            told,
            store=store,
            run_id=run_id,
            followed=followed,
            pool=lambda: _pool(placement),
            corpus=work.corpus,
            runtime=options.runtime,
        )
        bridge = Bridge(dispatcher, interrupt, keeper, steering, placement, watch)
        with closing(dispatcher):
            fit(bridge, options, _job(options, work, run_trial, checked))
    return RunSummary(interrupted=interrupt.requested)


def _with_metrics(listener: Listener, study: StudyKey | None, store: Store) -> tuple[Listener, Watch | None]:
    """Who hears of the trials, and who is told at every step of the packs; Ray's metrics name the study."""
    if study is None:
        return listener, None
    metrics = SweepMetrics(study, store)
    return Several(listener, metrics), metrics.refresh


def _pool(placement: Placement) -> Pool:
    machines = nodes()
    placement.update(resources(machines))
    return placement.slots, set(map(address_of, machines))


def _job(options: RunOptions, work: StudyWork, run_trial: RunTrial | None, checked: Checked) -> Job:
    return Job(
        title="trials" if work.study is None else work.study.variant,
        options=options.for_workers(),
        measurements=work.measurements,
        run_trial=run_trial,
        question=None if options.address is None else checked.question,
        asked=frozenset(checked.resources),
    )
