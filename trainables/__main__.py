"""Train and measure one trial without Ray: `python -m trainables CONFIG.json`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pydantic import ValidationError

from trainables.config import AnyConfig, code_of, read_config, register_file
from trainables.errors import PROGRAM, UserError, first_problem, terminal_text
from trainables.runtime import Runtime
from trainables.trial_folder import TrialFolder, TrialOutcome, trial_directory


def main(arguments: list[str] | None = None) -> int:
    """Run one trial and print its outcome as JSON.

    Returns 0 (done), 1 (diverged), 2 (bad input) or 130 (interrupted).
    """
    parser = argparse.ArgumentParser(prog="python -m trainables", description=__doc__)
    parser.add_argument(
        "config",
        type=Path,
        help=f"JSON file with one of the trials of `{PROGRAM} STUDY --dry-run --format json`",
    )
    parser.add_argument("--directory", type=Path, help="trial folder; default: in results/trials")
    parser.add_argument("--data-dir", type=Path, help="folder of the corpora; default: data/")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads; default: 1")
    parser.add_argument(
        "--deterministic", action="store_true", help="on a GPU: bitwise reproducible, but slower"
    )
    parser.add_argument(
        "--code",
        type=Path,
        action="append",
        help="Python file with a trial's class or output layers; may be repeated",
    )
    options = parser.parse_args(arguments)
    try:
        outcome = _run(options)
    except UserError as error:
        print(f"error: {terminal_text(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "Interrupted. Run the same command again to resume from the last checkpoint.",
            file=sys.stderr,
        )
        return 130
    result = outcome.model_dump_json(indent=1)
    # Another program gets the JSON unchanged; only a terminal gets escaped characters.
    print(terminal_text(result) if sys.stdout.isatty() else result)
    return 0 if outcome.state == "done" else 1


def _run(options: argparse.Namespace) -> TrialOutcome:
    for path in options.code or ():
        register_file(path)
    config = _read_config(options.config)
    if options.threads < 1:
        raise UserError(f"--threads: must be at least 1; got {options.threads}")
    # Imported late, so that a wrong config is reported at once.
    import torch

    from trainables.trial import run_trial

    if options.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device: cuda needs a GPU and a torch built for CUDA. Use --device cpu.")
    runtime = Runtime(
        data_dir=options.data_dir,
        device=options.device,
        threads=options.threads,
        deterministic=options.deterministic,
        code=code_of([config]),
    )
    directory = options.directory or trial_directory(Path("results"), config.trial_id)
    folder = TrialFolder(directory, config.trial_id)
    try:
        if folder.outcome() is not None:
            print(f"{directory} already has this trial's result; printing it.", file=sys.stderr)
        return run_trial(
            config, directory=directory, runtime=runtime, on_epoch=_print_note, note=_print_note
        )
    except UserError:
        raise
    except OSError as error:
        raise UserError(
            f"--directory: cannot write to {directory} ({error.strerror}). Free space there or "
            "choose another folder."
        ) from error
    except Exception as error:
        if not runtime.code:
            raise
        # An error in the user's own code is shown as a message; any other is a bug and keeps its
        # traceback.
        cause = folder.failure_cause(error, runtime.code)
        raise UserError(
            f"the trial failed: {cause}: fix the code; the traceback is in {folder.error_log}"
        ) from error


def _read_config(path: Path) -> AnyConfig:
    try:
        content = json.loads(path.read_bytes())
        if isinstance(content, list):
            if len(content) != 1:
                raise UserError(f"{path} has {len(content)} trials: keep one")
            [content] = content
        return read_config(content.get("config", content) if isinstance(content, dict) else content)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror}): check the path") from error
    except (ValueError, RecursionError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise UserError(f"{path} is not a trial's config ({problem}): fix it") from error


def _print_note(sentence: object) -> None:
    print(f"{terminal_text(str(sentence))}.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
