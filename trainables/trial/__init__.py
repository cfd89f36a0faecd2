"""One trial: trained and measured, or measured again on the weights that it kept."""

from trainables.trial.trial_run import kept_model, measure_kept, run_trial
