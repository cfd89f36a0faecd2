"""The results store, an index of the trials in SQLite or PostgreSQL.

`opening` opens a store, `store` says what it guarantees, `records` is the data that passes in and
out, `schema` has the tables. Only this package imports SQLAlchemy; `records` alone does not."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
