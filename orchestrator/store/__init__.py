"""The results store: an index of the trials in SQLite or PostgreSQL.

Only this package imports SQLAlchemy, except in `records`.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
