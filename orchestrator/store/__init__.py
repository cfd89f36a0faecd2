"""The results store: one class, SQLite and PostgreSQL behind it.

`opening` opens and upgrades a store, `store` says what it guarantees, `records` is the data that
passes in and out, `integrity` checks a store, `repair` puts it right. Only this package imports
SQLAlchemy; `records` alone does not."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
