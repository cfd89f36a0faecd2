"""The texts that a plan's trials read, brought here and checked before any of them starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rich.console import Console

from orchestrator.plan import Plan
from trainables.built_in_corpora import is_built_in
from trainables.corpora import NO_TEXT, OnProgress, ensure
from trainables.corpora.benchmarks import ensure_benchmarks
from trainables.corpora.source import test_words
from trainables.errors import UserError
from trainables.experiment_configs import WordPairsConfig
from trainables.measurements.contexts import require_in_text
from trainables.measurements.names import WORD_SIMILARITY


def ensure_texts(plan: Plan, console: Console) -> None:
    """Fetch what is missing of the corpus and of the benchmarks, and look up the user's own contexts in the test text.

    Raises UserError where one of them cannot be had, is not the right one, or does not fit.
    """
    if plan.corpus.name != NO_TEXT.name and not is_built_in(plan.corpus.name):
        ensure(plan.corpus.name, data_dir=plan.data_dir, on_progress=download_lines(console))
    if WORD_SIMILARITY in plan.measurements:
        ensure_benchmarks(plan.benchmarks_dir, on_progress=download_lines(console))
    _try_for_pairs(plan, console)
    if plan.own.contexts is not None:
        require_in_text(plan.own.contexts, test_words(plan.corpus.name, data_dir=plan.data_dir), plan.corpus.name)


def _try_for_pairs(plan: Plan, console: Console) -> None:
    """What trials that count word pairs read. Of two corpora one may be missing: only its own trial fails then."""
    texts = [trial.config.text for trial in plan.trials if isinstance(trial.config, WordPairsConfig)]
    if not texts:
        return
    folder, show = plan.benchmarks_dir, download_lines(console)
    attempts: list[Callable[[], object]] = [lambda: ensure_benchmarks(folder, on_progress=show)]
    attempts += [partial(ensure, text, data_dir=folder, on_progress=show) for text in texts]
    for attempt in attempts:
        try:
            attempt()
        except UserError as error:
            console.print(f"{error}; the study goes on without it.", soft_wrap=True)


def download_lines(console: Console) -> OnProgress:
    """A download's progress as a line for each tenth of a file."""
    shown: dict[str, int] = {}

    def show(file: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if shown.get(file) != tenth:
            shown[file] = tenth
            console.print(f"{file}: {done / 1e6:.1f} of {total / 1e6:.1f} MB")

    return show
