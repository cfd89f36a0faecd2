"""What a study still lacks: trials that have not ended, and measurements that done ones have not got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions
from orchestrator.plan import Plan, configs_left, measured_pace
from orchestrator.schedule import Recorder, RunSummary, StudyWork
from orchestrator.store import OPEN, PlannedTrial, RunRecord, TrialState
from orchestrator.sweep.announcement import opening
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.watch import Listener, Several, watching
from orchestrator.words import counted
from trainables.trial_folder import code_version, describe, package_versions

if TYPE_CHECKING:
    from orchestrator.plan import Tuner
    from orchestrator.store import Store


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What there is to do at one moment."""

    states: Mapping[str, TrialState]
    """Of every trial so far."""
    trials: Sequence[PlannedTrial]
    """To run now."""
    count: int
    """To run in all, with those that a tuner has yet to name."""
    lacking: Mapping[str, Sequence[str]]
    """Trial id -> the measurements that a done trial has not got."""

    def without(self, waiting: frozenset[str]) -> _Work:
        """The same but for trials that cannot run now."""
        trials = [trial for trial in self.trials if trial.trial_id not in waiting]
        return replace(self, trials=trials, count=self.count - len(self.trials) + len(trials))

    @property
    def nothing(self) -> bool:
        return not self.count and not self.lacking


@dataclass(frozen=True, kw_only=True)
class RemainingWork:
    """What one study still lacks, and the way to run it."""

    plan: Plan
    options: RunOptions
    store: Store
    console: Console
    members: Sequence[PlannedTrial]
    """All trials of the study so far."""
    trials: Sequence[PlannedTrial]
    """Those of them that are to have a result, after which `tuner` names others."""
    tuner: Tuner | None
    logs: Listener
    """Hears of every trial."""
    retried: bool
    """Whether just these trials are run, and no measurement is taken later."""

    def run(self) -> RunSummary:
        """Run the trials, then take the measurements; says before what and for how long."""
        work = self._work()
        if work.nothing:
            self._announce(work, (0.0, ""))
            return RunSummary()
        run_id = self.store.begin_run(_run_record(self.plan, self.options))
        try:
            if self._recover(work, run_id):
                work = self._work()
            if not work.nothing:
                # What is announced can be read: a text that cannot be had ends the run, or leaves trials out, before.
                # A retry has seen to that before it forgot what its trials came to.
                if not self.retried:
                    work = work.without(ensure_texts(self.plan, self.console))
                if self.options.data is not None:
                    self.options.data.push()
            seconds_per_trial = self._seconds_per_trial(work)
            self._announce(work, seconds_per_trial)
            if work.nothing:
                return RunSummary()
            study_work = StudyWork(
                measurements=self.plan.measurements,
                seconds_per_trial=seconds_per_trial[0],
                study=self.plan.key,
                corpus=self.plan.corpus,
            )
            if work.count and self._run_trials(work, study_work, run_id):
                return RunSummary(interrupted=True)
            if self.retried:
                return RunSummary()
            return self._measure_later(study_work, run_id)
        finally:
            self.store.end_run(run_id)

    def _work(self) -> _Work:
        states = self.store.states([trial.trial_id for trial in self.members])
        trials = [trial for trial in self.trials if states.get(trial.trial_id) in OPEN]
        tuner = self.tuner
        unnamed = self.plan.total - len(self.members) if tuner is not None and not tuner.over else 0
        lacking = {} if self.retried else self.store.lacking(self.plan.key, self.plan.measurements)
        return _Work(states=states, trials=trials, count=len(trials) + unnamed, lacking=lacking)

    def _announce(self, work: _Work, seconds_per_trial: tuple[float, str]) -> None:
        text = opening(self.plan, work.count, work.states, work.lacking, seconds_per_trial, self.options)
        self.console.print(text, soft_wrap=True)

    def _recover(self, work: _Work, run_id: int) -> int:
        """Record what an earlier run left as files: results of missing trials, measurements that done ones lack; a
        trial that was stopped early counts where it is searched."""
        recorder, lacking = Recorder(self.store, self.options, run_id), work.lacking
        results = recorder.recover(
            work.trials,
            note=self.console.print,
            may_be_pruned=lambda trial: self.tuner is not None and self.tuner.is_searched(trial),
        )
        if results:
            self.console.print(f"Recorded {counted(results, 'result')} that an earlier run had left as files.")
            lacking = {**lacking, **self.store.lacking(self.plan.key, self.plan.measurements)}
        # One that cannot be recorded is measured again, and its trouble said then.
        later, _ = recorder.measurements(lacking)
        if later:
            self.console.print(f"Recorded {counted(later, 'measurement')} that an earlier run had left as files.")
        return results + later

    def _run_trials(self, work: _Work, study_work: StudyWork, run_id: int) -> bool:
        """Run the trials; returns whether that was interrupted."""
        # Ray takes seconds to import; without trials to run nothing needs it.
        from orchestrator.schedule import run_trials

        with watching(self.console, work.count) as listener:
            summary = run_trials(
                work.trials,
                store=self.store,
                run_id=run_id,
                options=self.options,
                work=replace(study_work, known_ids=self._known_ids(), source=self.tuner),
                listener=Several(listener, self.logs),
            )
        return summary.interrupted

    def _measure_later(self, study_work: StudyWork, run_id: int) -> RunSummary:
        """Take the measurements that done trials of the plan lack by now, from the weights that they kept."""
        lacking = self.store.lacking(self.plan.key, self.plan.measurements)
        if not lacking:
            return RunSummary()
        from orchestrator.schedule import run_trials

        with watching(self.console, len(lacking), doing="measuring") as listener:
            return run_trials(
                [row.planned() for row in self.store.trials(self.plan.key) if row.trial_id in lacking],
                store=self.store,
                run_id=run_id,
                options=self.options,
                work=replace(study_work, lacking=lacking),
                listener=listener,
            )

    def _known_ids(self) -> frozenset[str] | None:
        """See `StudyWork.known_ids`: neither a retry nor a tuning takes more trials."""
        if self.retried or self.tuner is not None:
            return None
        return frozenset(row.trial_id for row in self.store.trials(self.plan.key))

    def _seconds_per_trial(self, work: _Work) -> tuple[float, str]:
        """Mean time of the trials to run, and where that is known from."""
        pace = measured_pace(self.plan, self.store, gpu=self.options.gpus_per_trial > 0)
        left = configs_left(self.plan, self.store)
        configs = [left[trial.trial_id] for trial in work.trials if trial.trial_id in left] or list(left.values())
        return sum(map(pace.seconds, configs)) / max(1, len(configs)), pace.basis


def _run_record(plan: Plan, options: RunOptions) -> RunRecord:
    machine = describe("cpu", threads=1)
    return RunRecord(
        code_version=code_version(),
        packages=package_versions(),
        host=machine["host"],
        device=f"{options.gpus_per_trial:g} GPUs a trial" if options.gpus_per_trial else machine["hardware"],
        corpus_sha256=plan.corpus.sha256,
    )
