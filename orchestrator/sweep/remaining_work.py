"""What a study still lacks: trials that have not ended, and measurements that done ones have not got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan.pace import configs_left, measured_pace
from orchestrator.plan.study_plan import Plan
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.store.records import OPEN, PlannedTrial, RunRecord, TrialState
from orchestrator.sweep.announcement import opening
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.measuring import measure_later, recover_all
from orchestrator.watch.listener import Listener, Several
from orchestrator.watch.terminal import watching
from trainables.trial_folder.environment import code_version, describe, package_versions

if TYPE_CHECKING:
    from orchestrator.plan.tuning.tuner import Tuner
    from orchestrator.store.store import Store


@dataclass(frozen=True, kw_only=True)
class _Work:
    """What there is to do at one moment."""

    states: Mapping[str, TrialState]
    """Of every known trial."""
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


class Missing:
    """Runs what one study lacks, of the trials that are wanted."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        store: Store,
        console: Console,
        *,
        known: Sequence[PlannedTrial],
        wanted: Sequence[PlannedTrial],
        tuner: Tuner | None,
        logs: Listener,
        again: bool,
    ) -> None:
        """`known` are all trials of the study so far, `wanted` those of them to run, after which `tuner` names others;
        `logs` hears of each.

        With `again` just the wanted ones are run and no measurement is taken later.
        """
        self._plan, self._options, self._store, self._console = plan, options, store, console
        self._known, self._wanted, self._tuner, self._again = known, wanted, tuner, again
        self._logs = logs

    def run(self) -> RunSummary:
        """Run the trials, then take the measurements; says before what and for how long."""
        work = self._work()
        if work.nothing:
            self._announce(work, (0.0, ""))
            return RunSummary()
        run_id = self._store.begin_run(_run_record(self._plan, self._options))
        try:
            if self._recover(work, run_id):
                work = self._work()
            if not work.nothing:
                # What is announced can be read: a text that cannot be had ends the run, or leaves trials out, before.
                work = work.without(ensure_texts(self._plan, self._console))
                if self._options.data is not None:
                    self._options.data.push()
            seconds_each = self._seconds_per_trial(work)
            self._announce(work, seconds_each)
            if work.nothing:
                return RunSummary()
            study_work = StudyWork(
                measurements=self._plan.measurements,
                seconds_per_trial=seconds_each[0],
                study=self._plan.key,
                corpus=self._plan.corpus,
            )
            if work.count and self._run_trials(work, study_work, run_id):
                return RunSummary(interrupted=True)
            if self._again:
                return RunSummary()
            return measure_later(self._plan, self._options, study_work, self._store, run_id, self._console)
        finally:
            self._store.end_run(run_id)

    def _work(self) -> _Work:
        states = self._store.states([trial.trial_id for trial in self._known])
        trials = [trial for trial in self._wanted if states.get(trial.trial_id) in OPEN]
        tuner = self._tuner
        unnamed = self._plan.total - len(self._known) if tuner is not None and not tuner.over else 0
        lacking = {} if self._again else self._store.lacking(self._plan.key, self._plan.measurements)
        return _Work(states=states, trials=trials, count=len(trials) + unnamed, lacking=lacking)

    def _announce(self, work: _Work, seconds_each: tuple[float, str]) -> None:
        text = opening(self._plan, work.count, work.states, work.lacking, seconds_each, self._options)
        self._console.print(text, soft_wrap=True)

    def _recover(self, work: _Work, run_id: int) -> int:
        """Record what an earlier run left as files; a trial that was stopped early counts where it is searched."""
        return recover_all(
            self._plan,
            work.trials,
            work.lacking,
            self._store,
            Recorder(self._store, self._options, run_id),
            self._console,
            may_be_pruned=lambda trial: self._tuner is not None and self._tuner.is_searched(trial),
        )

    def _run_trials(self, work: _Work, study_work: StudyWork, run_id: int) -> bool:
        """Run the trials; returns whether that was interrupted."""
        # Ray takes seconds to import; without trials to run nothing needs it.
        from orchestrator.schedule.trials_run import run_trials

        with watching(self._console, work.count) as listener:
            summary = run_trials(
                work.trials,
                store=self._store,
                run_id=run_id,
                options=self._options,
                work=replace(study_work, known_ids=self._known_ids(), source=self._tuner),
                listener=Several(listener, self._logs),
            )
        return summary.interrupted

    def _known_ids(self) -> frozenset[str] | None:
        """See `StudyWork.known_ids`: neither a retry nor a tuning takes more trials."""
        if self._again or self._tuner is not None:
            return None
        return frozenset(row.trial_id for row in self._store.trials(self._plan.key))

    def _seconds_per_trial(self, work: _Work) -> tuple[float, str]:
        """Mean time of the trials to run, and where that is known from."""
        pace = measured_pace(self._plan, self._store, gpu=self._options.gpus_per_trial > 0)
        left = configs_left(self._plan, self._store)
        wanted = [left[trial.trial_id] for trial in work.trials if trial.trial_id in left] or list(left.values())
        return sum(map(pace.seconds, wanted)) / max(1, len(wanted)), pace.basis


def _run_record(plan: Plan, options: RunOptions) -> RunRecord:
    about = describe("cpu", threads=1)
    return RunRecord(
        code_version=code_version(),
        packages=package_versions(),
        host=about["host"],
        device=f"{options.gpus_per_trial:g} GPUs a trial" if options.gpus_per_trial else about["hardware"],
        corpus_sha256=plan.corpus.sha256,
    )
