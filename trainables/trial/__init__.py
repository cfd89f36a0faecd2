"""One trial: trained and measured, or measured again on the weights that it kept."""

from trainables.trial.kept_weights import kept_model, measure_kept
from trainables.trial.trial_run import TrialRun, TrialTask, run_trial
