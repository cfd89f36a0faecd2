"""The texts that a plan's trials read, brought here and checked before any of them starts."""

from __future__ import annotations

from rich.console import Console

from orchestrator.plan import Plan
from trainables.config import WORD_SIMILARITY, WordPairsConfig, require_in_text
from trainables.corpora import NO_TEXT, ensure, test_words
from trainables.corpora import WORD_SIMILARITY as BENCHMARKS
from trainables.errors import UserError


def ensure_texts(plan: Plan, console: Console) -> frozenset[str]:
    """Fetch what is missing of the corpus and of the benchmarks, and look up the user's own
    contexts in the test text.

    Returns the ids of trials that have to wait, as a text of their own cannot be had, which is
    said. Raises UserError where what the whole study needs cannot be had, is not the right one, or
    does not fit."""
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
    return _without_pairs(plan, console)


def _without_pairs(plan: Plan, console: Console) -> frozenset[str]:
    """The trials that count word pairs and cannot: of two corpora one may be missing."""
    texts = {
        trial.trial_id: trial.config.text
        for trial in plan.trials
        if isinstance(trial.config, WordPairsConfig)
    }

    def absent(name: str) -> bool:
        try:
            ensure(name, data_dir=plan.benchmarks_dir)
        except UserError as error:
            console.print(f"{error}; the study goes on without it.")
            return True
        return False

    names = [BENCHMARKS, *sorted(set(texts.values()))] if texts else []
    missing = set(filter(absent, names))
    return frozenset(trial_id for trial_id, text in texts.items() if missing & {BENCHMARKS, text})
