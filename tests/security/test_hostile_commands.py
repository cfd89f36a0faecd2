"""Tests that any input gives a correct result or a one-line error.

Commands may write only to allowed folders.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from orchestrator.store import PlannedTrial, StudyKey, open_store
from tests.security.conftest import Cases, check_answer
from tests.support.hostile import CONFIGS, paths_in, texts, values, words
from tests.support.store_rows import RUN, forge, outcome
from trainables.config import read_config

OPTIONS = (
    "--scale", "--corpus", "--data-dir", "--store", "--storage", "--gpus-per-trial",
    "--cores-per-trial", "--contexts", "--benchmarks", "--search", "--budget", "--seeds",
    "--log-to", "--format", "--set", "--method", "--eps", "--address",
    "--max-concurrent", "--deterministic", "--dry-run",
)  # fmt: skip
GOOD = ("gss_grid", "fair_capacity", "press_robustness", "smoke", "quick", "pydocs", "markov-20",
        "json", "csv", "1", "training.epochs=3")  # fmt: skip
STARTS = ("run --dry-run", "retry --dry-run", "status", "results", "report", "rank", "studies",
          "stop", "store check", "corpus check")  # fmt: skip
KEYS = tuple({".".join(map(str, path)) for config in CONFIGS for path in paths_in(config)})
SEED = PlannedTrial.of(read_config(CONFIGS[0]), "gss seed=1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.chaos(30, 1_500)
def test_any_command_line_is_answered(folder: Path, every_case: Cases) -> None:
    plain = words.filter(lambda word: not set(word) & set("@/?#&"))
    server = "postgresql://{}:{}@/{}?{}=1&host=/nowhere".format
    kinds = st.sampled_from(("sqlite", "mysql", "")) | plain
    stores = st.builds(server, plain, plain, plain, plain)
    stores |= st.builds("{}://{}?{}".format, kinds, words, words)
    option, good = st.sampled_from(OPTIONS), st.sampled_from(GOOD)
    pairs = st.tuples(st.just("--store"), stores) | st.tuples(option, good | words)
    more = st.lists(pairs | st.tuples(option | good | words), max_size=4)

    def check(line: tuple[str, list[tuple[str, ...]]]) -> None:
        answer = check_answer(
            *line[0].split(), *(word for part in line[1] for word in part), allowed=folder
        )
        assert answer.returncode != 2 or answer.stderr.strip()

    every_case(st.tuples(st.sampled_from(STARTS), more), check)


@pytest.mark.parametrize(
    "line",
    [
        ("\udcff",),
        ("status", "--store", "postgresql://\udcff@/x?host=/nowhere"),
        ("status", "--store", "postgresql://u:secret\udcff@/x?host=/nowhere"),
        ("gss_grid", "--dry-run", "--corpus", "\udcff"),
        ("gss_grid", "--dry-run", "--set", "training.epochs=" + "9" * 5000),
        ("gss_grid", "--dry-run", "--set", "training.epochs=" + "[" * 50_000),
    ],
)
def test_invalid_words_are_refused(line: tuple[str, ...]) -> None:
    answer = check_answer(*line)
    assert answer.returncode == 2 and "secret" not in answer.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.chaos(30, 1_500)
def test_setting_is_applied_or_refused(every_case: Cases) -> None:
    typed = values.map(json.dumps) | texts.filter(lambda text: "\0" not in text)
    pairs = st.tuples(st.sampled_from(KEYS) | texts, typed)

    def check(settings: list[tuple[str, str]]) -> None:
        options = [word for key, value in settings for word in ("--set", f"{key}={value}")]
        study = "gss_grid" if len(settings) % 2 else "press_robustness"
        answer = check_answer(study, "--scale", "smoke", "--dry-run", "--format", "json", *options)
        for trial in json.loads(answer.stdout)["trials"] if answer.returncode == 0 else ():
            assert read_config(trial["config"]).trial_id == trial["trial_id"]

    every_case(st.lists(pairs, min_size=1, max_size=2), check)


STUDY = """
from search_spaces.study import Correlation, Study
from trainables.config import GssConfig, TrialConfig
def trials(corpus):
    for k in ({first!r}, {second!r}):
        yield TrialConfig(seed={seed!r}, corpus=corpus, output_layer=GssConfig(c=0.0, k=k))
def label(config):
    return {label!r} + f" {{config.output_layer.k}}"
STUDY = Study(name={name!r}, title={title!r}, trials=trials, label=label,
    measurements=({measurement!r},), corpora=({corpus!r},))
"""
FIELDS = {"first": 1.0, "second": 2.0, "seed": 1, "name": "mine", "title": "", "label": "",
          "corpus": "ptb", "measurement": "spectrum@1"}  # fmt: skip


@pytest.mark.chaos(25, 1_000)
def test_study_is_planned_or_refused(folder: Path, every_case: Cases) -> None:
    """A study file is the user's own code, but its errors must also be reported in one line."""
    finite = values.filter(lambda value: "inf" not in repr(value) and "nan" not in repr(value))
    fields = {name: st.just(value) | texts | finite for name, value in FIELDS.items()}
    studies = st.fixed_dictionaries(fields).map(lambda fields: STUDY.format(**fields))

    def check(content: bytes) -> None:
        (folder / "mine.py").write_bytes(content)
        answer = check_answer(folder / "mine.py", "--scale", "smoke", "--dry-run")
        assert answer.returncode == 0 or answer.stderr.strip()

    encoded = studies.map(lambda text: text.encode(errors="replace"))
    every_case(encoded | st.binary(max_size=80), check)


@pytest.mark.chaos(4, 150)
def test_stored_texts_are_shown(folder: Path, every_case: Cases) -> None:
    """Names in the store become folder names, table cells and titles, so any text must work."""
    url = f"sqlite:///{folder}/results/results.db"
    with open_store(url) as store:
        store.register(StudyKey(study="gss_grid", scale="smoke", corpus="pydocs"), [SEED])
        store.record(outcome(SEED.trial_id), run_id=store.begin_run(RUN), spectrum=None)
    plain = texts.map(lambda text: text.encode(errors="ignore").decode().replace("\0", ""))

    def check(rows: tuple[str, ...]) -> None:
        scale, corpus, overrides, name, cause, metric = rows
        settings = json.dumps({"settings": {overrides: [1]}})
        forge(url, "study", scale=scale, corpus=corpus, overrides=settings)
        forge(url, "study_trial", name=name)
        forge(url, "trial", outcome={"cause": cause, "environment": {}})
        metrics = {"test_perplexity": 9.5, metric: metric}
        forge(url, "result", condition="measurement = 'perplexity'", metrics=metrics)
        for command in (("status",), ("results", "gss_grid"), ("report", "all")):
            answer = check_answer(
                *command, "--storage", folder / "results", allowed=folder / "results"
            )
            commands = set("\x1b\x9b\u202e\x07")  # the output goes to a terminal
            assert not set(answer.stdout + answer.stderr) & commands

    every_case(st.tuples(*[plain] * 6), check)
