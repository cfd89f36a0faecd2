from .recording import Recorder as Recorder
from .study_work import RunSummary as RunSummary
from .study_work import StudyWork as StudyWork
from .trials_run import run_trials as run_trials
from .worker_run import run_here as run_here
