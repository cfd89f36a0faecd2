"""One trial: trained and measured, or measured again on the weights that it kept."""

from trainables.trial.stacked_run import StoppedError, run_stack
from trainables.trial.trial_run import TrialTask, kept_model, measure_kept, run_trial
