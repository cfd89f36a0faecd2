from .messages import EVENTS as EVENTS
from .messages import Assignment as Assignment
from .messages import Ending as Ending
from .messages import EndingKind as EndingKind
from .messages import TrialEvent as TrialEvent
from .pack_run import Job as Job
from .pack_run import TrialFunctions as TrialFunctions
from .pack_run import run_pack as run_pack
