from .kept_weights import kept_model as kept_model
from .kept_weights import measure_kept as measure_kept
from .trial_run import TrialRun as TrialRun
from .trial_run import TrialTask as TrialTask
from .trial_run import run_trial as run_trial
from .user_trial import Trial as Trial
