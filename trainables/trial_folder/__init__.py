"""A trial's files: written whole or not at all, by one worker at a time."""

from typing import TYPE_CHECKING

from trainables import on_first_use

if TYPE_CHECKING:
    from trainables.trial_folder.checkpoint import Checkpoints, load_tensors, save_tensors
    from trainables.trial_folder.environment import code_version, describe, package_versions
    from trainables.trial_folder.files import (
        DamagedFileError,
        UnreadableFileError,
        locked,
        open_file,
        write_file,
    )
    from trainables.trial_folder.folder import (
        FENCE,
        KEPT_WEIGHTS,
        LOCK,
        RESULT,
        RESULT_FILES,
        SupersededError,
        TrialFolder,
        is_checkpoint,
        measurement_files,
        progress,
        trial_directory,
    )
    from trainables.trial_folder.measurement_file import Measured, spectrum_of
    from trainables.trial_folder.metrics import TOP_K, Metric, WordsAfter, check_metrics
    from trainables.trial_folder.outcome import (
        EpochMetrics,
        EpochRanks,
        FinalState,
        TrialOutcome,
        perplexity,
    )
else:
    __getattr__ = on_first_use(
        __name__,
        "files",
        "environment",
        "metrics",
        "outcome",
        "measurement_file",
        "folder",
        "checkpoint",
    )
