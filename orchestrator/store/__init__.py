"""The results store: an index of the trials in SQLite or PostgreSQL.

No other package imports SQLAlchemy, nor does the module `records`.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
