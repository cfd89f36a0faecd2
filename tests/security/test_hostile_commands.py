"""Whatever is typed, or stands in a study or a store: a sentence or a right result, no traceback,
no write outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from orchestrator.store.opening import open_store
from orchestrator.store.records import PlannedTrial, StudyKey
from tests.security.conftest import Cases
from tests.support.command import sweep
from tests.support.hostile import CONFIGS, places, spoiled, texts, values, words
from tests.support.store_rows import RUN, forge, outcome
from tests.support.writes import outside, written
from trainables.config import read_config

OPTIONS = (
    "--scale", "--corpus", "--data-dir", "--store", "--storage", "--gpus-per-trial", "--cores-per-trial", "--contexts",
    "--benchmarks", "--search", "--budget", "--seeds", "--log-to", "--format", "--set", "--out", "--method", "--eps",
    "--address", "--max-concurrent", "--deterministic", "--dry-run",
)  # fmt: skip
GOOD = (
    "gss_grid",
    "fair_capacity",
    "press_robustness",
    "smoke",
    "quick",
    "pydocs",
    "markov-20",
    "json",
    "csv",
    "1",
    "training.epochs=3",
)
STARTS = (
    ("run", "--dry-run"), ("retry", "--dry-run"), ("status",), ("results",), ("report",), ("rank",), ("studies",),
    ("stop",), ("store", "check"), ("store", "upgrade"), ("corpus", "check"),
)  # fmt: skip
KEYS = tuple({".".join(map(str, place)) for config in CONFIGS for place in places(config)})
SEED = PlannedTrial.of(read_config(CONFIGS[0]), "gss seed=1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of the commands."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield tmp_path / "here"


def answered(*arguments: str | Path, allowed: Path | None = None) -> Any:
    """What the command said, which was no traceback; it wrote nothing but below the folder that is
    allowed."""
    with written() as written_places:
        answer = sweep(*arguments)
    said = answer.stdout + answer.stderr
    assert answer.returncode in (0, 1, 2), said
    assert "Traceback" not in said
    assert answer.returncode != 2 or answer.stderr.strip(), "a refusal says why"
    assert outside(written_places, *([allowed] if allowed else [])) == []
    return answer


@pytest.mark.chaos(30, 1_500)
def test_a_command_line_is_answered(folder: Path, every_case: Cases) -> None:
    plain = words.filter(lambda word: not set(word) & set("@/?#&"))
    stores = st.builds(
        "postgresql://{}:{}@/{}?{}=1&host=/nowhere".format, plain, plain, plain, plain
    )
    stores |= st.builds(
        "{}://{}?{}".format, st.sampled_from(("sqlite", "mysql", "")) | plain, words, words
    )
    pairs = st.tuples(st.just("--store"), stores) | st.tuples(
        st.sampled_from(OPTIONS), st.sampled_from(GOOD) | words
    )
    more = st.lists(
        pairs | st.tuples(st.sampled_from(OPTIONS) | st.sampled_from(GOOD) | words), max_size=4
    ).map(lambda parts: [word for part in parts for word in part])

    def check(line: tuple[tuple[str, ...], list[str]]) -> None:
        answered(*line[0], *line[1], allowed=folder)

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
def test_what_is_no_text_or_too_long_is_refused(line: tuple[str, ...]) -> None:
    answer = answered(*line)
    assert answer.returncode == 2
    assert "secret" not in answer.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.chaos(30, 1_500)
def test_a_setting_is_in_every_config_or_refused(every_case: Cases) -> None:
    written_out = values.map(json.dumps) | texts.filter(lambda text: "\0" not in text)
    pairs = st.tuples(st.sampled_from(KEYS) | texts, written_out)

    def check(settings: list[tuple[str, str]]) -> None:
        options = [word for key, value in settings for word in ("--set", f"{key}={value}")]
        study = "gss_grid" if len(settings) % 2 else "press_robustness"
        answer = answered(study, "--scale", "smoke", "--dry-run", "--format", "json", *options)
        if answer.returncode == 0:
            for trial in json.loads(answer.stdout):
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
STUDY = Study(name={name!r}, title={title!r}, trials=trials, label=label, measurements=({measurement!r},),
    corpora=({corpus!r},))
"""


@pytest.mark.chaos(25, 1_000)
def test_a_study_is_planned_or_refused(folder: Path, every_case: Cases) -> None:
    """A study is code that the user runs; what it holds by mistake is said, all the same."""
    file = folder / "mine.py"
    any_value = values.filter(lambda value: "inf" not in repr(value) and "nan" not in repr(value))
    right = {
        "first": 1.0,
        "second": 2.0,
        "seed": 1,
        "name": "mine",
        "title": "",
        "label": "",
        "corpus": "ptb",
    }
    fields = st.fixed_dictionaries(
        {
            name: st.just(value) | texts | any_value
            for name, value in {**right, "measurement": "spectrum@1"}.items()
        }
    ).map(lambda fields: STUDY.format(**fields).encode(errors="replace"))

    def check(content: bytes) -> None:
        file.write_bytes(content)
        answered(file, "--scale", "smoke", "--dry-run")

    every_case(fields | st.binary(max_size=80), check)


@pytest.mark.chaos(4, 150)
def test_a_store_is_shown_and_reported_whatever_its_texts_say(
    folder: Path, every_case: Cases
) -> None:
    """Names that a store holds become folders, cells and titles; its causes and settings are
    shown."""
    storage = folder / "results"
    utf8 = st.tuples(
        *[texts.map(lambda text: text.encode(errors="ignore").decode().replace("\0", ""))] * 6
    )
    url = f"sqlite:///{storage}/results.db"
    key = StudyKey(study="gss_grid", scale="smoke", corpus="pydocs")
    with open_store(url) as store:
        store.register(key, [SEED])
        run_id = store.begin_run(RUN)
        store.record(outcome(SEED.trial_id), run_id=run_id, spectrum=None)

    def check(rows: tuple[str, ...]) -> None:
        scale, corpus, overrides, name, cause, metric = rows
        variant = {
            "scale": scale,
            "corpus": corpus,
            "overrides": json.dumps({"settings": {overrides: [1]}}),
        }
        forge(url, "study", **variant)
        forge(url, "study_trial", name=name)
        forge(url, "trial", outcome={"cause": cause, "environment": {}})
        metrics = {"test_perplexity": 9.5, metric: metric}
        forge(url, "result", where="measurement = 'perplexity'", metrics=metrics)
        for command in (("status",), ("results", "gss_grid"), ("report", "all")):
            answer = answered(*command, "--storage", storage, allowed=storage)
            assert not set(answer.stdout + answer.stderr) & set("\x1b\x9b\u202e\x07"), (
                "a command to the terminal"
            )

    every_case(utf8, check)


WORDS = {
    "context": "by",
    "next": "tons",
    "next_in_text": "tons",
    "probability": 0.5,
    "rank": 1,
    "top": [["tons", 0.5], ["of", 0.25]],
}


@pytest.mark.chaos(5, 200)
def test_words_that_a_store_holds_are_reported_or_refused(folder: Path, every_case: Cases) -> None:
    storage = folder / "results"
    url = f"sqlite:///{storage}/results.db"
    with open_store(url) as store:
        store.register(StudyKey(study="qualitative", scale="smoke", corpus="pydocs"), [SEED])
        store.record(outcome(SEED.trial_id), run_id=store.begin_run(RUN), spectrum=None)

    def check(metric: tuple[str, str]) -> None:
        forge(url, "result", where="measurement = 'perplexity'", metrics=dict([metric]))
        answer = answered("report", "qualitative", "--storage", storage, allowed=storage)
        assert answer.returncode != 2 or "damaged" in answer.stderr

    check(("top_k yang 1", json.dumps(WORDS)))
    [table] = storage.glob("reports/*/predictions.csv")
    assert "yang 1,tons,tons," in table.read_text()
    names = st.sampled_from(("top_k yang 1", "top_k yang 2", "top_k yang", "top_k")) | texts.map(
        "top_k {} 1".format
    )
    every_case(st.tuples(names, spoiled((WORDS,)).map(json.dumps) | texts), check)
