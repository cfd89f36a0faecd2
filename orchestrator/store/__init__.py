"""The results store: an index of the trials in SQLite or PostgreSQL.

`Store` documents its guarantees. Only this package imports SQLAlchemy; its module `records` does
not.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
