"""One trial: trained and measured, or measured again on the weights that it kept."""

from trainables.trial.kept_weights import kept_model, measure_kept
from trainables.trial.stacked_run import StoppedError, run_stack
from trainables.trial.trial_run import TrialTask, run_trial
