from .app import main as main
from .options import open_existing as open_existing
from .results import VariantFilter as VariantFilter
from .results import no_study as no_study
from .results import study_name as study_name
