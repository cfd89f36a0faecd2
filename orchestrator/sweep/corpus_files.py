"""Download and check the texts that a plan's trials need."""

from __future__ import annotations

from rich.console import Console

from orchestrator.plan import Plan
from trainables.config import WORD_SIMILARITY, WordPairsConfig, require_in_text
from trainables.corpora import NO_TEXT, ensure, test_words
from trainables.corpora import WORD_SIMILARITY as BENCHMARKS
from trainables.errors import UserError


def ensure_texts(plan: Plan, console: Console) -> frozenset[str]:
    """Download missing corpora and benchmarks; return the ids of trials without their text.

    Prints a note about each unavailable text that only some trials need. Raises UserError if a file
    for all trials is unavailable or wrong, or if the test text does not contain the user's
    contexts.
    """
    if plan.corpus != NO_TEXT:
        ensure(plan.corpus.name, data_dir=plan.data_dir)
    if WORD_SIMILARITY in plan.measurements:
        ensure(BENCHMARKS, data_dir=plan.benchmarks_dir)
    if plan.inputs.contexts is not None:
        require_in_text(
            plan.inputs.contexts,
            test_words(plan.corpus.name, data_dir=plan.data_dir),
            plan.corpus.name,
        )
    return _missing_pair_trials(plan, console)


def _missing_pair_trials(plan: Plan, console: Console) -> frozenset[str]:
    # Word pairs are counted in two corpora. If one is missing, trials with the other still run.
    texts = {
        trial.trial_id: trial.validated.text
        for trial in plan.trials
        if isinstance(trial.validated, WordPairsConfig)
    }

    def is_absent(name: str) -> bool:
        try:
            ensure(name, data_dir=plan.benchmarks_dir)
        except UserError as error:
            console.print(f"{error}; the study continues without it.")
            return True
        return False

    names = [BENCHMARKS, *sorted(set(texts.values()))] if texts else []
    missing_texts = set(filter(is_absent, names))
    return frozenset(
        trial_id for trial_id, text in texts.items() if missing_texts & {BENCHMARKS, text}
    )
