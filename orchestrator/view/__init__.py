"""Browser pages over the store and the storage, live while a sweep runs.

The pages write nothing but requests to stop.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
