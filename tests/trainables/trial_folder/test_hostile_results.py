"""Result files with hostile content, most of them with valid checksums."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainables.trial_folder import DamagedFileError, EpochMetrics, TrialFolder, TrialOutcome
from trainables.trial_folder.files import sealed

EPOCH = EpochMetrics(
    epoch=1, tokens=1, train_loss=1.0, valid_loss=1.0, averaging=False, seconds=1.0
)
SOUND: dict[str, Any] = TrialOutcome(
    trial_id="a",
    state="done",
    epochs=(EPOCH,),
    measurements={"perplexity@1": {"test_perplexity": 2.0}},
).model_dump(mode="json")
WORDS = json.dumps({"next": "tons", "probability": 0.5, "rank": 1, "top": [["tons", 0.5]]})


def changed(**changes: Any) -> bytes:
    return sealed(json.dumps({**SOUND, **changes}, indent=1))


def epochs(**changes: Any) -> bytes:
    return changed(epochs=[{**SOUND["epochs"][0], **changes}])


def measured(*tables: tuple[str, dict[str, object]]) -> bytes:
    return changed(measurements=dict(tables))


RESULTS = {
    "a name that moves the cursor": measured(("\x1b[2J@1", {"x": 1})),
    "an integer beyond Python's own limit": sealed(
        '{\n "trial_id": "a", "state": "done", "measurements": {"x@1": {"y": %s}}}' % ("9" * 10_000)
    ),
    "a number in words": measured(("perplexity@1", {"test_perplexity": "low"})),
    "words that are none": measured(("top_k@1", {"top_k even 1": "{}"})),
    "words of a context without a number": measured(("top_k@1", {"top_k even": WORDS})),
    "a metric called like a setting": measured(("x@1", {"seed": 1})),
    "a doubled metric": measured(("perplexity@1", {"x": 1}), ("spectrum@1", {"x": 1})),
    "not a number": measured(("perplexity@1", {"x": float("nan")})),
    "a table for a number": measured(("perplexity@1", {"x": {"y": 1}})),
    "an unknown state": changed(state="running"),
    "an epoch twice": changed(epochs=[SOUND["epochs"][0]] * 2),
    "a huge count": epochs(tokens=2**70),
    "half a character": changed(cause="\ud800"),
    "a deep nest": sealed("{\n" + '"trial_id":' * 100_000),
    "no seal": json.dumps(SOUND, indent=1).encode(),
    "another seal": changed().replace(b"2.0", b"3.0"),
    "no UTF-8": changed().replace(b'"a"', b'"\xff"'),
    "another trial's": changed(trial_id="b"),
}


def test_sound_results_are_read(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(changed())
    assert TrialFolder(tmp_path, "a").outcome() == TrialOutcome.model_validate(SOUND)
    (tmp_path / "result.json").write_bytes(measured(("top_k@1", {"top_k even 1": WORDS})))
    assert TrialFolder(tmp_path, "a").outcome() is not None


@pytest.mark.parametrize("name", RESULTS)
def test_hostile_result_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "result.json").write_bytes(RESULTS[name])
    folder = TrialFolder(tmp_path, "a")
    with pytest.raises(DamagedFileError, match=r"result\.json (is|does)"):
        folder.result()
    assert folder.outcome() is None
    assert folder.set_aside_result().read_bytes() == RESULTS[name]


@pytest.mark.parametrize("metrics", [{"test_perplexity": "low"}, {"seed": 1}])
def test_hostile_measurement_is_refused(tmp_path: Path, metrics: dict[str, object]) -> None:
    content = {"trial_id": "a", "name": "top_k@1", "metrics": {"x": 1}, "has_spectrum": False}
    file, folder = tmp_path / "measurement-top_k@1.json", TrialFolder(tmp_path, "a")
    file.write_bytes(sealed(json.dumps(content, indent=1)))
    assert folder.measurement("top_k@1") == ({"x": 1}, None)
    file.write_bytes(sealed(json.dumps({**content, "metrics": metrics}, indent=1)))
    with pytest.raises(DamagedFileError, match="not complete"):
        folder.measurement("top_k@1")


def test_exception_may_have_any_text(tmp_path: Path) -> None:
    outcome = TrialOutcome(trial_id="a", state="failed", cause="a\0b\x1b[31m\ud800é")
    assert outcome.cause == "a?b?[31m?é"
    TrialFolder(tmp_path, "a").write_result(outcome, None)
