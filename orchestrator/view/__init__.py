"""Browser pages over the store and the storage, updated while a sweep runs.

The pages only read, except for requests to stop trials.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
