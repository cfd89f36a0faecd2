"""What a study still lacks: trials that have not ended, and measurements that done ones have not
got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions, check_torch_gpu
from orchestrator.forecast import STACK, configs_left, measured_pace
from orchestrator.plan import Plan
from orchestrator.schedule import Recorder, RunSummary, StudyWork
from orchestrator.store import OPEN, PlannedTrial, RunRecord, TrialState, expire_dead_owners
from orchestrator.sweep.announcement import opening
from orchestrator.sweep.commands import Typed
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.disk_space import disk_warning
from orchestrator.watch import Listener, Several, watching
from orchestrator.words import counted
from trainables.config import AnyConfig
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

    @property
    def nothing(self) -> bool:
        return not self.count and not self.lacking


@dataclass(frozen=True, kw_only=True)
class RemainingWork:
    """What one study still lacks, and the way to run it."""

    plan: Plan
    options: RunOptions
    typed: Typed
    store: Store
    console: Console
    members: Sequence[PlannedTrial]
    """All trials of the study so far; `tuner` names others."""
    retried: Sequence[PlannedTrial] | None
    """Those of them that alone are run, and no measurement is taken later; None: all, and all
    measurements."""
    tuner: Tuner | None
    logs: Listener
    """Hears of every trial."""

    def run(self) -> RunSummary:
        """Run the trials, then take the measurements; says before what and for how long."""
        work = self._work()
        if work.nothing:
            self._announce(work)
            return RunSummary()
        run_id = self.store.begin_run(_run_record(self.plan, self.options))
        try:
            self._recover(work, run_id)
            work = self._work()
            if not work.nothing:
                # Before Ray is started, and anything is downloaded.
                if self.options.takes_own_gpu and (note := check_torch_gpu(self._configs(work))):
                    self.console.print(note)
                # What is announced can be read: a text that cannot be had ends the run, or leaves
                # trials out, before. A retry has seen to that before it forgot what its trials came
                # to.
                if self.retried is None:
                    work = self._work(waiting=ensure_texts(self.plan, self.console))
                if self.options.data is not None:
                    self.options.data.push()
            seconds_per_trial = self._seconds_per_trial(work)
            self._announce(work, seconds_per_trial)
            if warning := disk_warning(self._configs(work), self.plan.corpus, self.options):
                self.console.print(warning)
            study_work = StudyWork(
                store=self.store,
                run_id=run_id,
                options=self.options,
                seconds_per_trial=seconds_per_trial[0],
                study=self.plan.key,
                corpus=self.plan.corpus,
                measurements=self.plan.measurements,
                stack=STACK if self.options.gpus_per_trial == 1 else 1,
            )
            summary = self._train(work, study_work)
            return summary if summary.interrupted else self._measure_later(study_work)
        finally:
            self.store.end_run(run_id)

    def _work(self, waiting: frozenset[str] = frozenset()) -> _Work:
        """`waiting`: trials that cannot run now."""
        states = self.store.states([trial.trial_id for trial in self.members])
        trials = self.members if self.retried is None else self.retried
        left = [t for t in trials if states.get(t.trial_id) in OPEN and t.trial_id not in waiting]
        unnamed = (
            self.plan.total - len(self.members)
            if self.tuner is not None and not self.tuner.over
            else 0
        )
        return _Work(states=states, trials=left, count=len(left) + unnamed, lacking=self._lacking())

    def _lacking(self) -> Mapping[str, Sequence[str]]:
        return (
            self.store.lacking(self.plan.key, self.plan.measurements)
            if self.retried is None
            else {}
        )

    def _announce(self, work: _Work, seconds_per_trial: tuple[float, str] = (0.0, "")) -> None:
        text = opening(
            self.plan,
            work.count,
            work.states,
            work.lacking,
            seconds_per_trial,
            self.options,
            self.typed,
        )
        self.console.print(text)

    def _recover(self, work: _Work, run_id: int) -> None:
        """Record what an earlier run left as files: results of missing trials, measurements that
        done ones lack; a trial that was stopped early counts where it is searched."""
        expire_dead_owners(self.store)  # what they claimed takes any result
        recorder, lacking = Recorder(self.store, self.options, run_id), work.lacking
        results = recorder.recover(
            work.trials,
            note=self.console.print,
            may_be_pruned=lambda trial: self.tuner is not None and self.tuner.is_searched(trial),
        )
        if results:
            self.console.print(
                f"Recorded {counted(results, 'result')} that an earlier run had left as files."
            )
            lacking = {**lacking, **self.store.lacking(self.plan.key, self.plan.measurements)}
        # One that cannot be recorded is measured again, and its trouble said then.
        later, _ = recorder.measurements(lacking)
        if later:
            self.console.print(
                f"Recorded {counted(later, 'measurement')} that an earlier run had left as files."
            )

    def _train(self, work: _Work, study_work: StudyWork) -> RunSummary:
        if not work.count:
            return RunSummary()
        # Ray takes seconds to import; without trials to run nothing needs it.
        from orchestrator.schedule import run_trials

        planned_ids = None
        if self.retried is None and self.tuner is None:
            planned_ids = frozenset(row.trial_id for row in self.store.trials(self.plan.key))
        with watching(self.console, work.count) as listener:
            heard = Several(listener, self.logs)
            return run_trials(
                work.trials,
                replace(study_work, listener=heard, planned_ids=planned_ids, source=self.tuner),
            )

    def _measure_later(self, study_work: StudyWork) -> RunSummary:
        """Take the measurements that done trials of the plan lack by now, from the weights that
        they kept."""
        lacking = self._lacking()
        if not lacking:
            return RunSummary()
        from orchestrator.schedule import run_trials

        trials = [
            row.planned() for row in self.store.trials(self.plan.key) if row.trial_id in lacking
        ]
        with watching(self.console, len(lacking), doing="measuring") as listener:
            return run_trials(trials, replace(study_work, listener=listener, lacking=lacking))

    def _seconds_per_trial(self, work: _Work) -> tuple[float, str]:
        """Mean time of the trials to run, and where that is known from."""
        pace = measured_pace(self.plan, self.store, gpu=self.options.gpus_per_trial > 0)
        configs = self._configs(work)
        return sum(map(pace.seconds, configs)) / max(1, len(configs)), pace.basis

    def _configs(self, work: _Work) -> list[AnyConfig]:
        """Of the trials to run, or of all that are left where a tuner has yet to name some."""
        left = configs_left(self.plan, self.store)
        return [left[trial.trial_id] for trial in work.trials if trial.trial_id in left] or list(
            left.values()
        )


def _run_record(plan: Plan, options: RunOptions) -> RunRecord:
    machine = describe("cpu", threads=1)
    return RunRecord(
        code_version=code_version(),
        packages=package_versions(),
        host=machine["host"],
        device=f"{options.gpus_per_trial:g} GPUs a trial"
        if options.gpus_per_trial
        else machine["hardware"],
        corpus_sha256=plan.corpus.sha256,
    )
