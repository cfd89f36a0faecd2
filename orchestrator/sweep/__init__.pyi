from .bundle import open_bundle as open_bundle
from .commands import Typed as Typed
from .commands import retry_command as retry_command
from .reports import report_folder as report_folder
from .reports import write_index as write_index
from .reports import write_report as write_report
from .study_run import INTERRUPTED as INTERRUPTED
from .study_run import run_study as run_study
