from .frames import epochs as epochs
from .frames import results as results
from .frames import spectra as spectra
from .models import trained as trained
from .sweeps import run as run
