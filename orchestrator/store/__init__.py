"""The results store: one interface, SQLite and PostgreSQL behind it.

`opening` opens and upgrades a store, `interface` says what it guarantees, `records` is the data that passes in and out,
`integrity` checks a store. Only this package imports SQLAlchemy; importing `records` or `interface` alone does not.
"""
