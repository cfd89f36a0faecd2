"""The commands that only show something: plans, studies, how far they are, results, corpora, ranks."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rich.console import Console

from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store.records import StudyKey, TrialRow
    from orchestrator.store.store import Store
    from trainables.corpora import CheckedFile

FORMATS = ("table", "csv", "json")
Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which variants of a study are meant; None takes any."""

    scale: str | None = None
    corpus: str | None = None
    overrides: str | None = None

    def fits(self, key: StudyKey) -> bool:
        """Whether this variant is meant."""
        asked = ((self.scale, key.scale), (self.corpus, key.corpus), (self.overrides, key.overrides))
        return all(wanted in (None, found) for wanted, found in asked)

    def __str__(self) -> str:
        parts = {"scale": self.scale, "corpus": self.corpus, "--set": self.overrides}
        return "".join(f", {name} {value}" for name, value in parts.items() if value)


def check_format(form: str, formats: Sequence[str] = FORMATS) -> None:
    """Raise UserError for a format that there is not."""
    if form not in formats:
        raise UserError(f"--format is one of {', '.join(formats)}; got {form!r}")


def print_records(records: Sequence[Record], columns: Mapping[str, str], form: str, console: Console) -> None:
    """Print records; `columns` maps keys to the headings of the table form, csv and json keep the keys."""
    check_format(form)
    if form == "json":
        print(json.dumps([dict(record) for record in records], indent=1))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, list(columns), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)
    else:
        from orchestrator.report.tables import Cell, TextTable
        from orchestrator.report.terminal import Fitting

        body = tuple(
            tuple(Cell(str(value), number=value if isinstance(value, int) else None) for value in line)
            for line in ([record[key] for key in columns] for record in records)
        )
        console.print(Fitting(table=TextTable(caption="", head=tuple(columns.values()), body=body)))


def print_studies(form: str, console: Console) -> None:
    """Every built-in study with its source and its number of trials at paper scale."""
    from orchestrator.plan.study_plan import make_plan, scale_named
    from search_spaces.catalog import NAMES, load_study

    records = []
    for name in NAMES:
        study = load_study(name)
        counts = [
            f"{make_plan(study, scale_named('paper'), corpus, None, {}).total} on {corpus}" for corpus in study.corpora
        ]
        records.append({"study": name, "trials": ", ".join(counts), "question": study.question, "source": study.source})
    headings = {"study": "study", "trials": "trials at paper scale", "question": "question", "source": "source"}
    print_records(records, headings, form, console)


def print_status(study: str | None, store_url: str, form: str, console: Console) -> None:
    """The trials of each study variant by state; what a killed command of this machine left is running no more."""
    from orchestrator.store.lease import give_back_of_dead
    from orchestrator.store.opening import open_store

    check_format(form)
    name = study and study_name(study)
    with open_store(store_url, create=False) as store:
        with suppress(UserError):  # a store that can only be read is shown as it is
            give_back_of_dead(store)
        known = store.studies()
        summaries = [s for s in known if name in (None, s.key.study)]
        busy = [s.key for s in summaries if s.counts["running"]]
        running = [_running_line(row) for key in busy for row in store.trials(key) if row.owner]
    if not summaries and name is not None:
        names = ", ".join(dict.fromkeys(s.key.study for s in known)) or "none"
        raise UserError(f"the store has no study {name!r}; it has {names}: choose one of these, or run it first")
    records = [
        {
            "study": s.key.study,
            "scale": s.key.scale,
            "corpus": s.key.corpus,
            "overrides": "" if s.key.overrides == "{}" else s.key.overrides,
            "trials": sum(s.counts.values()),
            **s.counts,
        }
        for s in summaries
    ]
    keys = ("study", "scale", "corpus", "overrides", "trials")
    states = ("done", "running", "planned", "diverged", "failed", "pruned")
    print_records(records, {key: key for key in (*keys, *states)}, form, console)
    if form == "table" and running:
        console.print("\nRunning, or next on a worker; to stop one, type python sweep.py stop and the start of its id:")
        for line in dict.fromkeys(running):
            console.print(line, soft_wrap=True)


def _running_line(trial: TrialRow) -> str:
    """A trial's id, name, and the machine of the command that runs it."""
    host = (trial.owner or "").partition(":")[0]
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    return f"{trial.trial_id[:12]}  {trial.name}  (run from {host}{attempt})"


def study_name(argument: str) -> str:
    """The name under which the store has a study: a name is taken as it is, a file is asked for its study's."""
    from search_spaces.catalog import is_file, load_study

    return load_study(argument).name if is_file(argument) else argument


def choose_variant(store: Store, study: str, wanted: Wanted) -> StudyKey:
    """The variant of a study that is meant; which of several, is said. Raises UserError where none fits.

    Of several that fit, those with a result go first, then those without `--set`, then the one planned last.
    """
    fitting = [s for s in store.studies() if s.key.study == study and wanted.fits(s.key)]
    if not fitting:
        raise UserError(f"the store has no study {study!r}{wanted}: see what it has with python sweep.py status")
    order = {s.key: (s.counts["done"] > 0, s.key.overrides == "{}", place) for place, s in enumerate(fitting)}
    chosen = max(order, key=order.__getitem__)
    if len(fitting) > 1:
        settings = "" if chosen.overrides == "{}" else f", --set {chosen.overrides}"
        print(
            f"Of {len(fitting)} variants of {study}, this is the one at scale {chosen.scale}, corpus {chosen.corpus}"
            f"{settings}; name another with --scale, --corpus and --set.",
            file=sys.stderr,
        )
    return chosen


def print_results(study: str, wanted: Wanted, store_url: str, form: str) -> None:
    """All trials of a study variant, to standard output, in one of four formats."""
    from orchestrator.analysis.frames import flatten
    from orchestrator.report.export import FORMATS as RESULT_FORMATS
    from orchestrator.report.export import write_parquet, write_results
    from orchestrator.store.opening import open_store

    check_format(form, RESULT_FORMATS)
    if form == "parquet" and sys.stdout.isatty():
        raise UserError("parquet is a binary format: send it to a file, for example with > results.parquet")
    with open_store(store_url, create=False) as store:
        results = flatten(store.results(choose_variant(store, study_name(study), wanted)))
    if form == "parquet":
        write_parquet(results, sys.stdout.buffer)
    else:
        write_results(results, form, sys.stdout, _own_metrics(study))  # type: ignore[arg-type]


def _own_metrics(argument: str) -> list[str]:
    """See `own_metrics`; of a study whose file was not named, none."""
    from orchestrator.report.tables import own_metrics
    from search_spaces import catalog

    found = argument in catalog.NAMES or catalog.is_file(argument)
    return own_metrics(catalog.load_study(argument)) if found else []


def print_corpus(name: str, data_dir: Path | None, console: Console) -> None:
    """What a verified corpus, or the folder of published benchmarks, consists of."""
    from trainables.config.built_in_corpora import markov_rank
    from trainables.corpora import check, resolve_argument
    from trainables.corpora.published_corpora import WORD_SIMILARITY

    if name == WORD_SIMILARITY:
        _print_benchmarks(data_dir, console)
        return
    name, data_dir = resolve_argument(name, data_dir)
    report = check(name, data_dir=data_dir)
    about, rank = report.identity, markov_rank(name)
    _print_files(report.files, console)
    console.print(
        f"{name} is in order: train {about.train_tokens:,}, valid {about.valid_tokens:,}, test {about.test_tokens:,} "
        f"tokens; vocabulary {about.vocabulary_size:,}" + ("." if rank is None else f"; the rank of log P is {rank}."),
    )


def _print_benchmarks(data_dir: Path | None, console: Console) -> None:
    from trainables.corpora.benchmarks import check_benchmarks, parse_pairs, read_published

    _print_files(check_benchmarks(data_dir), console)
    pairs = {each.name: len(parse_pairs(each)) for each in read_published(data_dir)}
    counts = ", ".join(f"{name} {count:,}" for name, count in pairs.items())
    console.print(f"The {len(pairs)} benchmarks are in order; pairs: {counts}.", soft_wrap=True)


def _print_files(files: Sequence[CheckedFile], console: Console) -> None:
    for file in files:
        console.print(f"{file.name}: {file.size_bytes:,} bytes, SHA-256 {file.sha256}")


def print_rank(file: Path, method: str, eps: str, form: str, console: Console) -> None:
    """The ranks of a saved matrix."""
    from trainables.measurements.matrix_file import EpsName, rank_of_file
    from trainables.measurements.spectrum import Method

    check_format(form)
    for option, value, choices in (("--method", method, get_args(Method)), ("--eps", eps, get_args(EpsName))):
        if value not in choices:
            raise UserError(f"{option} is one of {', '.join(choices)}; got {value!r}")
    report = rank_of_file(file, method=method, eps=eps)  # type: ignore[arg-type]
    if form == "json":
        print(json.dumps(report, indent=1))
        return
    records = [
        {"measure": name, "value": value if isinstance(value, str) else f"{value:.6g}"}
        for name, value in report.items()
    ]
    print_records(records, {"measure": "measure", "value": "value"}, form, console)
