"""Run the missing trials and measurements of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions, check_torch_gpu
from orchestrator.forecast import STACK, configs_left, seconds_each
from orchestrator.plan import Plan
from orchestrator.schedule import Recorder, RunSummary, StudyWork
from orchestrator.store import OPEN, PlannedTrial, RunRecord, expire_dead_owners
from orchestrator.sweep.announcement import opening
from orchestrator.sweep.commands import Typed
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.disk_space import disk_warning
from orchestrator.sweep.study_state import StudyState
from orchestrator.watch import Listener, Several, watching
from orchestrator.words import counted
from trainables.config import AnyConfig
from trainables.trial_folder import (
    KEPT_WEIGHTS,
    RESULT,
    code_version,
    describe,
    measurement_files,
    package_versions,
)

if TYPE_CHECKING:
    from orchestrator.plan import Tuner
    from orchestrator.store import Store


@dataclass(frozen=True, kw_only=True)
class RemainingWork:
    """Runs a study's missing trials, then its missing measurements."""

    plan: Plan
    options: RunOptions
    typed: Typed
    store: Store
    console: Console
    members: Sequence[PlannedTrial]
    """The study's trials so far. A tuning adds more."""
    retries: Sequence[PlannedTrial] | None
    """The trials to run again. None: run all missing trials and measurements."""
    tuner: Tuner | None
    logs: Listener
    events: Listener

    def run(self) -> RunSummary:
        """Print the plan and its estimated time, run the trials, then measure."""
        state = self._state()
        if not (state.missing_count or state.unmeasured):
            self._announce(state)
            return RunSummary()
        run_id = self.store.begin_run(_run_record(self.plan, self.options))
        try:
            if self._recover(state, run_id):
                state = self._state()
            if state.missing_count or state.unmeasured:
                state = self._prepare(state)
            configs = self._configs(state)
            seconds, basis = seconds_each(
                configs, self.plan, self.store, gpu=self.options.gpus_per_trial > 0
            )
            self._announce(state, (seconds, basis))
            if warning := disk_warning(configs, self.plan.corpus, self.options):
                self.console.print(warning)
            work = StudyWork(
                store=self.store,
                run_id=run_id,
                options=self.options,
                seconds_per_trial=seconds,
                study=self.plan.key,
                corpus=self.plan.corpus,
                measurements=self.plan.measurements,
                trials_at_once=STACK if self.options.gpus_per_trial == 1 else 1,
            )
            summary = self._train(state, work)
            return summary if summary.interrupted else self._measure_later(work)
        finally:
            self.store.end_run(run_id)

    def _state(self) -> StudyState:
        states = self.store.states([trial.trial_id for trial in self.members])
        candidates = self.members if self.retries is None else self.retries
        is_tuning = self.tuner is not None and not self.tuner.over
        all_unmeasured = (
            self.store.unmeasured(self.plan.key, self.plan.measurements)
            if self.retries is None
            else {}
        )
        files = self.options.storage.trial_files(all_unmeasured) if all_unmeasured else {}
        unmeasured = {
            trial_id: names
            for trial_id, names in all_unmeasured.items()
            if RESULT not in (present := files.get(trial_id, {}))
            or not present.keys().isdisjoint([KEPT_WEIGHTS, *measurement_files(names)])
        }
        return StudyState(
            states=states,
            trials=[trial for trial in candidates if states.get(trial.trial_id) in OPEN],
            unnamed_count=self.plan.total - len(self.members) if is_tuning else 0,
            unmeasured=unmeasured,
            weightless_count=len(all_unmeasured) - len(unmeasured),
        )

    def _announce(self, state: StudyState, seconds_each: tuple[float, str] = (0.0, "")) -> None:
        counts = {"trials": self.plan.total, "missing": state.missing_count}
        self.events.event("study_begun", counts)
        self.console.print(opening(self.plan, state, seconds_each, self.options, self.typed))

    def _prepare(self, state: StudyState) -> StudyState:
        if self.options.takes_own_gpu and (note := check_torch_gpu(self._configs(state))):
            self.console.print(note)
        # A retry has fetched the texts before it reset any result.
        if self.retries is None:
            waiting = ensure_texts(self.plan, self.console)
            state = replace(state, trials=[t for t in state.trials if t.trial_id not in waiting])
        return state

    def _recover(self, state: StudyState, run_id: int) -> bool:
        expire_dead_owners(self.store)  # trials with expired claims accept any result
        recorder = Recorder(self.store, self.options.storage, run_id)
        outcomes = recorder.recover(
            state.trials,
            note=self.console.print,
            may_be_pruned=lambda trial: self.tuner is not None and self.tuner.is_searched(trial),
        )
        result_count = sum(is_recorded for _, is_recorded in outcomes)
        unmeasured = self._state().unmeasured if result_count else state.unmeasured
        # A measurement that cannot be recorded is taken again, and reported then.
        measurement_count, _ = recorder.measurements(unmeasured)
        for number, noun in ((result_count, "result"), (measurement_count, "measurement")):
            if number:
                self.console.print(
                    f"Recorded {counted(number, noun)} that an earlier run had left as files."
                )
        return bool(result_count or measurement_count)

    def _train(self, state: StudyState, work: StudyWork) -> RunSummary:
        if not state.missing_count:
            return RunSummary()
        # Ray takes seconds to import, and is not needed without trials.
        if self.options.runtime.worker:
            from orchestrator.schedule import run_here as run_trials
        else:
            from orchestrator.schedule import run_trials
        with watching(self.console, state.missing_count, self.plan.study.goal) as listener:
            return run_trials(
                state.trials,
                replace(
                    work, listener=Several(listener, self.logs, self.events), source=self.tuner
                ),
            )

    def _measure_later(self, work: StudyWork) -> RunSummary:
        if not (unmeasured := self._state().unmeasured):
            return RunSummary()
        from orchestrator.schedule import run_trials

        trials = [row for row in self.store.trials(self.plan.key) if row.trial_id in unmeasured]
        goal = self.plan.study.goal
        with watching(self.console, len(unmeasured), goal, doing="measuring") as listener:
            return run_trials(
                trials,
                replace(work, listener=Several(listener, self.events), unmeasured=unmeasured),
            )

    def _configs(self, state: StudyState) -> list[AnyConfig]:
        if self.plan.tuning is not None and self.retries is None:
            rows = self.store.trials(self.plan.key)
            return configs_left(self.plan.tuning, rows)
        return [trial.validated for trial in state.trials]


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
