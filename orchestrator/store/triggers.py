"""What the database itself refuses, whoever asks: to change or delete a done trial, its results,
epochs or spectrum.

A result or a spectrum may be added to it. A measurement that is taken later changes the checksums
of these."""

from __future__ import annotations

from sqlalchemy import Connection

from orchestrator.store.schema import trial

REFUSAL = "a done trial never changes"
FIXED = ", ".join(
    column.name
    for column in trial.c
    if column.name not in ("results_checksum", "spectrum_checksum")
)
PARTS = {
    "result": "UPDATE OR DELETE",
    "spectrum": "UPDATE OR DELETE",
    "epoch": "INSERT OR UPDATE OR DELETE",
}
"""The tables of what belongs to a trial, and what is refused there."""
FUNCTION = f"""
CREATE OR REPLACE FUNCTION refuse_change_of_done() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_done boolean := true;
BEGIN
    IF TG_OP <> 'TRUNCATE' AND TG_TABLE_NAME = 'trial' THEN
        is_done := OLD.state = 'done';
    ELSIF TG_OP <> 'TRUNCATE' THEN
        SELECT count(*) > 0 INTO is_done FROM trial WHERE id IN (OLD.trial_id, NEW.trial_id) AND state = 'done';
    END IF;
    IF is_done THEN
        RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN COALESCE(NEW, OLD);
END $$
"""


def triggers(dialect: str, fixed: str = FIXED) -> dict[str, str]:
    """By name, what makes each trigger in a database of this kind; `fixed` are the columns of a
    done trial."""
    return _on_postgresql(fixed) if dialect == "postgresql" else _on_sqlite(fixed)


def make_triggers(connection: Connection, fixed: str = FIXED) -> None:
    """Make them in a database that has the tables, with the columns `fixed`, and no triggers."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(FUNCTION)
    for statement in triggers(connection.dialect.name, fixed).values():
        connection.exec_driver_sql(statement)


def drop_triggers(connection: Connection) -> None:
    """Drop them, to put damage right."""
    for name in triggers(connection.dialect.name):
        table = f" ON {name.split('_')[0]}" if connection.dialect.name == "postgresql" else ""
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}{table}")


def _on_postgresql(fixed: str) -> dict[str, str]:
    made = {}
    for table, changes in {"trial": f"UPDATE OF {fixed} OR DELETE", **PARTS}.items():
        for name, moment, level in (
            ("change", changes, "ROW"),
            ("truncate", "TRUNCATE", "STATEMENT"),
        ):
            action = f"FOR EACH {level} EXECUTE FUNCTION refuse_change_of_done()"
            made[f"{table}_{name}"] = (
                f"CREATE TRIGGER {table}_{name} BEFORE {moment} ON {table} {action}"
            )
    return made


def _on_sqlite(fixed: str) -> dict[str, str]:
    """One for each kind of change: INSERT too, since INSERT OR REPLACE deletes without a DELETE
    trigger."""
    conditions = {
        ("trial", f"UPDATE OF {fixed}"): "OLD.state = 'done'",
        ("trial", "DELETE"): "OLD.state = 'done'",
        ("trial", "INSERT"): "EXISTS (SELECT 1 FROM trial WHERE id = NEW.id AND state = 'done')",
        ("epoch", "INSERT"): _is_done("NEW"),
        (
            "result",
            "INSERT",
        ): "EXISTS (SELECT 1 FROM result WHERE trial_id = NEW.trial_id AND measurement = "
        f"NEW.measurement AND version = NEW.version) AND {_is_done('NEW')}",
        (
            "spectrum",
            "INSERT",
        ): f"EXISTS (SELECT 1 FROM spectrum WHERE trial_id = NEW.trial_id) AND {_is_done('NEW')}",
    }
    for table in PARTS:
        conditions[table, "UPDATE"] = f"{_is_done('OLD')} OR {_is_done('NEW')}"
        conditions[table, "DELETE"] = _is_done("OLD")
    made = {}
    for (table, change), condition in conditions.items():
        name = f"{table}_{change.split()[0].lower()}"
        action = f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        made[name] = f"CREATE TRIGGER {name} BEFORE {change} ON {table} FOR EACH ROW {action}"
    return made


def _is_done(row: str) -> str:
    return f"EXISTS (SELECT 1 FROM trial WHERE id = {row}.trial_id AND state = 'done')"
