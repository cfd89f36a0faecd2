"""Text corpora: download, verification and encoding as token ids.

`Corpus` and `load` import numpy; planning a study needs neither.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
