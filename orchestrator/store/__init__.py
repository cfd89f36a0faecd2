"""The results store: one class, SQLite and PostgreSQL behind it.

`opening` opens and upgrades a store, `store` says what it guarantees, `records` is the data that passes in and out,
`integrity` checks a store. Only this package imports SQLAlchemy; importing `records` alone does not.
"""
