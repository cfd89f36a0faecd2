from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import sweep

LOGGED = ("gss_grid", "--scale", "smoke", "--storage", "{tmp}/r", "--log-to")
HEAD = """from search_spaces.study import Correlation, Counts, Curves, Differences, GridMap, Study
from search_spaces.study import GroupTable
from trainables.config import MosConfig, SoftmaxConfig, TrialConfig
from search_spaces.tuning import Dimension, Tuning
def trial(corpus):
    return TrialConfig(seed=1, corpus=corpus, output_layer=SoftmaxConfig())
def tuned(key="seed", side="a", base=trial):
    space = (Dimension(key=key, short="x", values=(1, 2)),)
    tuning = Tuning(sides={side: base}, stage1=space, stage2=space, seeds=(3,))
    return Study(name="mine", tuning=tuning)
def over(**fields):
    return Study(**{"name": "mine", "trials": lambda corpus: [trial(corpus)], **fields})
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("gss_grid", "--scale", "quikc"), "has no scale 'quikc': did you mean quick? Choose"),
        (("gss_grid", "--corpus", "ptp", "--dry-run"), "did you mean ptb"),
        (("gss_grid", "--storag", "x"), "--storage"),
        (("gss_grid", "--set", "training.lr=3"), "did you mean training.learning_rate?"),
        (("statu",), "did you mean status?"),
        (("GSS_GRID",), "did you mean gss_grid?"),
        (("gss_grid", "--corpus", "{tmp}/partial"), "valid.txt"),
        (("gss_grid", "--corpus", "ptb", "--data-dir", "{tmp}/wrong"), "train.txt"),
        (("gss_grid", "--scale", "smoke", "--corpus", "{tmp}/short"), "needs at least"),
        (("gss_grid", "--store", "{tmp}/newer.db", "--storage", "{tmp}/r"), "newer"),
        (("gss_grid", "--store", "mysql://here/db", "--storage", "{tmp}/r"), "mysql"),
        (("gss_grid", "--gpus-per-trial", "64", "--storage", "{tmp}/r"), "64"),
        (("gss_grid", "--scale", "smoke", "--storage", "/proc/nothing"), "--storage"),
        (("rank", "{tmp}/nan.npy"), "row 3"),
        (("status", "--storage", "{tmp}/nowhere"), "nowhere"),
        (("status", "--storage", "s3://bucket/runs"), "--store"),
        (("status", "--storage", "{tmp}/newer.db"), "newer.db is a file"),
        (("mine", "--dry-run"), "did you mean mine.py?"),
        (("program", "--dry-run"), "'program': did you mean spam?"),
        (("gss_grid", "--dry-run", "--gpus-per-trial", "1.5"), "1.5"),
        (("gss_grid", "--dry-run", "--format", "yaml"), "'json'"),
        (("gss_grid", "--format", "json"), "--dry-run"),
        (("gss_grid", "--format", "jsonl", "--dry-run"), "events"),
        (("retry", "gss_grid", "--format", "json"), "'jsonl'"),
        (("gss_grid", "--gpus-per-trial", "nan", "--storage", "{tmp}/r"), "gpus-per-trial"),
        (("corpus", "check", "ptb", "--data-dir", "{tmp}/wrong"), "train.txt"),
        (("gss_grid", "--search", "tpe"), "--search"),
        (("fair_capacity", "--budget", "0"), "2,940"),
        (("fair_capacity", "--budget", "3", "--search", "grid"), "--budget"),
        (("fair_capacity", "--set", "model.dropout_hidden=0.1"), "tunes"),
        (("results", "gss_grid", "--model", "gru"), "'transformer'"),
        (("fair_capacity", "--model", "transformer", "--dry-run"), "AWD-LSTM"),
        (("all", "--model", "transformer", "--dry-run"), "one study"),
        (("published", "--corpus", "ptb", "--dry-run"), "wikitext-2"),
        (("press_robustness", "--corpus", "ptb", "--dry-run"), "no text"),
        (("gss_grid", "--contexts", "{tmp}/contexts.json", "--dry-run"), "--contexts"),
        (("gss_grid", "--benchmarks", "{tmp}/wrong", "--dry-run"), "--benchmarks"),
        ((*LOGGED, "wandb"), "wandb"),
        ((*LOGGED, "mlflow=postgresql://me@host/db?password=secret"), "password"),
        (("gss_grid", "--data-dir", "s3://bucket/data", "--dry-run"), "--data-dir"),
        (("status", "--store", "postgresql://u:secret@h/d"), "PGPASSWORD"),
        (("gss_grid", "--dry-run", "--store", "postgresql://u:secret@h/d"), "PGPASSWORD"),
        (("retry", "gss_grid", "--dry-run"), "--dry-run"),
        (("gss_grid", "--max-failures", "0"), "--max-failures"),
        (("gss_grid", "--trial-timeout", "9"), "--trial-timeout"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _bad_inputs(tmp_path)
    _assert_refused(sentence, *(argument.format(tmp=tmp_path) for argument in arguments))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("STUDY = 3", "must define STUDY"),
        ("def broken(:", "SyntaxError"),
        ("STUDY = over(trials=lambda corpus: [])", "at least one trial"),
        ("STUDY = over(trials=lambda corpus: [1])", "yields a int"),
        ("STUDY = over(trials=lambda corpus: 1 / 0)", "ZeroDivisionError"),
        ("STUDY = over(trials=lambda corpus: [trial(corpus)] * 2)", "planned twice"),
        ("STUDY = over(analyses=Correlation())", "analyses must be"),
        ("STUDY = over(measurements=('perplexity@1', 'top_k'))", "'top_k'"),
        ("STUDY = over(label=lambda config: 1 / 0)", "label"),
        ("STUDY = over(name='../mine')", "letters, digits"),
        ("STUDY = over(label=lambda config: 3)", "returns 3"),
        ("raise SystemExit(0)", "SystemExit"),
        (
            "STUDY = over(analyses=(GridMap(row='seed', column='output_layer.nme'),))",
            "did you mean output_layer.name",
        ),
        (
            "STUDY = over(analyses=(Curves(x='training.epoch', metrics=('loss',), caption=''),))",
            "training.epochs",
        ),
        (
            "STUDY = over(analyses=(Differences(baselines={'softmax': 'softmx'}),))",
            "did you mean softmax?",
        ),
        (
            "STUDY = over(analyses=(GroupTable(metrics=('test_perplexty', 'press_rank')),))",
            "did you mean test_perplexity",
        ),
        (
            "STUDY = over(analyses=(Counts(metric='effective_rank_1e-9'),))",
            "did you mean effective_rank",
        ),
        (
            "STUDY = over(trials=lambda corpus: [MosConfig(mixture=3)])",
            "MosConfig: mixture: Extra inputs are not",
        ),
        ("STUDY = tuned(key='sede')", "sede"),
        ("STUDY = tuned(key='model.dropout_hidden')", "less than 1"),
        ("STUDY = tuned(base=lambda corpus: [].pop())", "Fix its tuning"),
    ],
)
def test_broken_study_file_gets_one_sentence(tmp_path: Path, body: str, sentence: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(HEAD + body)
    _assert_refused(sentence, file, "--dry-run")


def _assert_refused(sentence: str, *arguments: str | Path) -> None:
    answer = sweep(*arguments)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    last = answer.stderr.strip().splitlines()[-1]
    assert last.lower().startswith("error: ")
    assert sentence in last
    assert "Traceback" not in answer.stdout + answer.stderr
    assert "secret" not in answer.stdout + answer.stderr


def _bad_inputs(folder: Path) -> None:
    (folder / "partial").mkdir()
    (folder / "mine.py").write_text("STUDY = None")
    (folder / "program.py").touch()
    (folder / "partial" / "train.txt").write_text("a b c\n" * 100)
    (folder / "wrong" / "ptb").mkdir(parents=True)
    (folder / "short").mkdir()
    (folder / "contexts.json").write_text('[{"last_token_index": 3}]')
    (folder / "wrong" / "EN-A.txt").write_text("cat dog 1\n")
    for split in ("train", "valid", "test"):
        (folder / "wrong" / "ptb" / f"{split}.txt").write_text("not the penn treebank\n" * 50)
        (folder / "short" / f"{split}.txt").write_text("a b c\n")
    with sqlite3.connect(folder / "newer.db") as database:
        database.execute("create table schema_version (version integer)")
        database.execute("insert into schema_version values (9999)")
    matrix = np.ones((10, 4))
    matrix[3, 2] = np.nan
    np.save(folder / "nan.npy", matrix)
