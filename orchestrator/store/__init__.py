"""The results store: trials and their results in a SQLite or PostgreSQL database.

Only this package imports SQLAlchemy. Its module `records` works without SQLAlchemy.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
