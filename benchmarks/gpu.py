"""Benchmark a GPU without Ray, a network or a corpus.

Needs torch, numpy and pydantic (and scipy for the spectrum), and the folders benchmarks, gpu_proof,
trainables and search_spaces.

    python -m benchmarks.gpu --budget 480                           the main figures first
    python -m benchmarks.gpu --model transformer                    Transformers
    python -m benchmarks.gpu --device cpu --scale tiny --steps 1    a test on a CPU

Each line is for one output layer, trained on random words. `stack 16` trains sixteen models as one,
and `alone` one model through cuDNN. `torch.nn` trains PyTorch's LSTM and linear layers, without
dropout or averaging. `network`, `output` and `optim.` are milliseconds per step and model, timed
separately. `step ms` also includes the drawing of dropout masks. `s/epoch` is seconds per epoch and
model. `V100` is the speed-up over the paper's V100. `TFLOP/s` counts matrix products only, and `of`
is its share of the device's peak.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch

from gpu_proof.parts import PartsMs, parts_ms
from gpu_proof.timing import (
    Ceilings,
    alone_pace,
    ceilings,
    framework_pace,
    seconds_of,
    stack_pace,
    usual_trainer,
)
from gpu_proof.trials import (
    CORPORA,
    LAYERS,
    STACKED,
    TRIALS,
    Model,
    Scale,
    flop_per_token,
    layer_config,
    random_corpus,
)
from search_spaces.awd_lstm import V100_SECONDS_PER_EPOCH
from trainables.config import SPECTRUM, LanguageTrialConfig, TrialConfig
from trainables.corpora import Corpus
from trainables.device import Precision, gpu_name
from trainables.measurements import PeakMemory, measure
from trainables.runtime import Runtime
from trainables.stack import Stack, stack_key
from trainables.training import Trainer

PRECISIONS: tuple[Precision, ...] = ("bf16", "tf32", "float32")
METHODS = ("stack", "alone", "torch.nn", "spectrum")
CEILING_SIZE = {"cuda": 8192, "cpu": 256}


def spectrum_seconds(config: LanguageTrialConfig, corpus: Corpus, device: str) -> float:
    trainer = Trainer(config, corpus, Runtime(device=device))
    return seconds_of(
        lambda: measure([SPECTRUM], trainer.model, corpus, config, trainer.runtime), device
    )


class Job(NamedTuple):
    how: str
    corpus: str
    layer: str
    precision: Precision
    models: int = 1

    @property
    def label(self) -> str:
        return f"stack {self.models}" if self.how == "stack" else self.how


@dataclass(frozen=True)
class Line:
    job: Job
    seconds: float | None = None
    """Seconds per epoch of one trial, or per spectrum."""
    times_v100: float | None = None
    step_ms: float | None = None
    parts: PartsMs | None = None
    tflop_s: float | None = None
    peak_mib: float | None = None
    note: str = ""
    failed: bool = False


class Bench:
    def __init__(self, model: Model, device: str, scale: Scale, steps: int) -> None:
        self._trial = TRIALS[model]
        self._device, self._scale, self._steps = device, scale, steps

    def line(self, job: Job) -> Line:
        try:
            return self._measure(job)
        except torch.OutOfMemoryError:
            return Line(job, note="out of memory")
        except Exception as error:  # GPU time is short: go on with the other lines
            return Line(job, note=_error_text(error), failed=True)
        finally:
            gc.collect()
            torch.cuda.empty_cache()

    def _measure(self, job: Job) -> Line:
        corpus, memory = random_corpus(job.corpus, self._scale), PeakMemory(self._device)
        layer = layer_config(job.layer, job.corpus, self._scale)
        config = self._trial(job.corpus, layer, job.precision, self._scale)
        match job.how:
            case "spectrum":
                seconds = spectrum_seconds(config, corpus, self._device)
                return Line(
                    job, seconds, peak_mib=memory.peak_mib(), note="(seconds of one spectrum)"
                )
            case "stack":
                return self._stack(job, config, corpus, memory)
            case "alone":
                pace = alone_pace(usual_trainer(config, corpus, self._device), self._steps)
            case _:
                assert isinstance(config, TrialConfig)
                pace = framework_pace(config, len(corpus.vocabulary), self._device, self._steps)
        line = self._rate_line(job, config, corpus, pace.tokens / pace.seconds)
        return replace(line, step_ms=pace.step_ms, peak_mib=memory.peak_mib())

    def _stack(
        self, job: Job, config: LanguageTrialConfig, corpus: Corpus, memory: PeakMemory
    ) -> Line:
        if stack_key(config) is None:
            return Line(job, note="cannot train in a stack")
        trainers = [usual_trainer(config, corpus, self._device) for _ in range(job.models)]
        # All trials have one seed, like the cells of `gss_grid`.
        pace = stack_pace(Stack(trainers), self._steps)
        line = self._rate_line(job, config, corpus, pace.tokens / pace.seconds)
        line = replace(line, step_ms=pace.step_ms, peak_mib=memory.peak_mib())
        try:
            return replace(line, parts=parts_ms(trainers, calls=min(10, self._steps)))
        except torch.OutOfMemoryError:
            return replace(line, note="out of memory while timing the parts")
        except Exception as error:
            return replace(line, note=f"parts {_error_text(error)}", failed=True)

    def _rate_line(
        self, job: Job, config: LanguageTrialConfig, corpus: Corpus, tokens_a_second: float
    ) -> Line:
        seconds, flop = (
            len(corpus.train) / tokens_a_second,
            flop_per_token(config, len(corpus.vocabulary)),
        )
        timed = self._scale == "paper" and isinstance(config, TrialConfig)
        published_s = V100_SECONDS_PER_EPOCH[job.corpus].get(job.layer) if timed else None
        times = published_s / seconds if published_s else None
        return Line(job, seconds, times, tflop_s=1e-12 * flop * tokens_a_second)


def _error_text(error: Exception) -> str:
    return f"failed: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def jobs(options: argparse.Namespace) -> list[Job]:
    """Return jobs in the order of the options, but the first stack size and four layers first."""
    corpora, layers, precisions, sizes = (
        options.corpora,
        options.layers,
        options.precisions,
        options.sizes,
    )
    combinations = list(product(corpora, layers, precisions))
    queue = [
        Job("stack", *settings, models)
        for models in sizes
        for settings in combinations
        if settings[1] in STACKED
    ]
    queue += [Job("alone", *settings) for settings in combinations]
    if options.model == "awd_lstm":
        queue += [
            Job("torch.nn", *settings) for settings in combinations if settings[1] == "softmax"
        ]
    queue.append(Job("spectrum", corpora[0], layers[0], "float32"))

    def sort_key(job: Job) -> tuple[int, ...]:
        size_rank = sizes.index(job.models) if job.how == "stack" else 0
        layer = layers.index(job.layer)
        ranks = (
            size_rank + 3 * (layer >= 4),
            job.how == "spectrum",
            corpora.index(job.corpus),
            layer,
            METHODS.index(job.how),
        )
        return *ranks, precisions.index(job.precision) if job.precision in precisions else 0

    return sorted(queue, key=sort_key)


def _table_row(line: Line, peaks: Ceilings) -> str:
    job, parts = line.job, line.parts or (None,) * 3
    ceiling_share = line.tflop_s / peaks.tflop_s[job.precision] if line.tflop_s else None
    figures = [*((part, "9.3f") for part in parts), (line.step_ms, "9.3f"), (line.seconds, "9.3f")]
    figures += [(line.times_v100, "7.1f")]
    figures += [(line.tflop_s, "9.2f"), (ceiling_share, "6.0%"), (line.peak_mib, "9.0f")]
    columns = "".join(
        "-".rjust(int(f.partition(".")[0])) if value is None else format(value, f)
        for value, f in figures
    )
    labels = f"{job.corpus:<11}{job.layer:<16}{job.precision:<9}{job.label:<14}"
    return f"{labels}{columns}  {line.note}".rstrip()


HEADER = (
    f"{'corpus':<11}{'layer':<16}{'products':<9}{'how':<14}{'network':>9}{'output':>9}"
    f"{'optim.':>9}{'step ms':>9}{'s/epoch':>9}{'V100':>7}{'TFLOP/s':>9}{'of':>6}{'peak MiB':>9}"
)


def _as_json(line: Line) -> dict[str, Any]:
    parts = line.parts._asdict() if line.parts else None
    return line.job._asdict() | asdict(line) | {"job": line.job.label, "parts": parts}


def run_lines(options: argparse.Namespace, name: str) -> int:
    ends_s = time.monotonic() + options.budget
    peaks = ceilings(options.precisions, options.device, CEILING_SIZE[options.device])
    rates = ", ".join(f"{precision} {tflop_s:.4g}" for precision, tflop_s in peaks.tflop_s.items())
    print(f"peak rates: products {rates} TFLOP/s; copies {peaks.copy_gb_s:.4g} GB/s")
    print(HEADER, flush=True)
    bench, lines = Bench(options.model, options.device, options.scale, options.steps), list[Line]()
    queue = jobs(options)
    for job in queue:
        if time.monotonic() > ends_s:
            print(f"--budget: {options.budget:g} s used, {len(queue) - len(lines)} lines skipped")
            break
        lines.append(bench.line(job))
        print(_table_row(lines[-1], peaks), flush=True)
        if options.json is not None:
            figures = {
                "device": name,
                "torch": torch.__version__,
                "ceilings": peaks._asdict(),
                "lines": lines,
            }
            options.json.write_text(json.dumps(figures, default=_as_json, indent=1))
    return int(any(line.failed for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=tuple(TRIALS), default="awd_lstm")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--scale", choices=("paper", "tiny"), default="paper")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[16, 1, 8, 4, 32, 2], help="models per stack"
    )
    parser.add_argument("--corpora", nargs="+", choices=tuple(CORPORA), default=list(CORPORA))
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument(
        "--budget", type=float, default=480.0, help="seconds after which no new line starts"
    )
    parser.add_argument("--json", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "--device: no GPU found. Use --device cpu --scale tiny --steps 1 to try the benchmark."
        )
    if options.scale == "tiny":
        torch.set_num_threads(1)  # for tiny work, threads only add waits
    name = gpu_name() if options.device == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}", flush=True)
    raise SystemExit(run_lines(options, name))


if __name__ == "__main__":
    main()
