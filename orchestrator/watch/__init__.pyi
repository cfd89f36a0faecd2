from .console import ShownConsole as ShownConsole
from .console import for_reader as for_reader
from .listener import Listener as Listener
from .listener import Several as Several
from .log_targets import open_sinks as open_sinks
from .ray_metrics import SweepMetrics as SweepMetrics
from .terminal import watching as watching
from .trial_logs import TrialLogs as TrialLogs
