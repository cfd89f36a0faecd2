from .app import main as main
from .options import store_url as store_url
from .results import VariantFilter as VariantFilter
from .results import no_study as no_study
from .results import study_name as study_name
