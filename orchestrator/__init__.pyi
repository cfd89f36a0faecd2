from .notebook import epochs as epochs
from .notebook import results as results
from .notebook import run as run
from .notebook import spectra as spectra
from .notebook import trained as trained
