"""PostgreSQL databases for tests: copies of one migrated database, emptied and given to the next test.

A new one each time would be simpler, but to drop a database makes the server write everything down first: most of a second for each test.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
from psycopg import sql

_OURS = "NOT LIKE ALL (ARRAY['pg\\_%', 'information\\_schema'])"
_SHAPE = f"""
SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
    SELECT concat_ws(' ', t.relkind, n.nspname, t.relname, a.attname, a.atttypid::regtype, a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
    FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
    WHERE n.nspname {_OURS}
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname {_OURS}
    UNION ALL SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint
    UNION ALL SELECT tgname || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT proname || prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname {_OURS}
    UNION ALL SELECT setconfig::text FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS lines (line)
"""
_TABLES = f"SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname {_OURS} ORDER BY 1"
_SEQUENCES = f"""
SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL
FROM pg_sequences WHERE schemaname {_OURS}
"""
_OTHERS = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


class Copies:
    """Copies of `template`, a database of `server` (an address that names another one) that nobody changes."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._free: list[str] = []
        with self._in(template) as connection:
            self._shape = _shape(connection)
            self._tables = [str(name) for (name,) in connection.execute(_TABLES.encode())]
            self._sequences = connection.execute(_SEQUENCES.encode()).fetchall()
            self._rows = {table: rows for table in self._tables if (rows := _copied(connection, table))}

    def take(self) -> str:
        """The name of one that is as the template."""
        if self._free:
            return self._free.pop()
        name = f"test_{secrets.token_hex(8)}"
        self._order("CREATE DATABASE {} TEMPLATE {}", name, self._template)
        return name

    def give_back(self, name: str) -> None:
        """Whoever is still connected is cut off. One whose tables were changed is not given again."""
        with self._in(name) as connection:
            connection.execute(_OTHERS)
            usable = _shape(connection) == self._shape
            if usable:
                self._empty(connection)
        if usable:
            self._free.append(name)
        else:
            self._drop(name)

    def close(self) -> None:
        for name in self._free:
            self._drop(name)

    def _empty(self, connection: psycopg.Connection) -> None:
        connection.execute("SET session_replication_role = replica")  # no foreign key and no trigger has a say
        connection.execute("".join(f"DELETE FROM {table};" for table in self._tables).encode())
        for table, rows in self._rows.items():
            with connection.cursor().copy(f"COPY {table} FROM STDIN".encode()) as copy:
                copy.write(rows)
        for sequence in self._sequences:
            connection.execute("SELECT setval(%s, %s, %s)", sequence)

    def _in(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self._server, dbname=name)

    def _drop(self, name: str) -> None:
        self._order("DROP DATABASE {} WITH (FORCE)", name)

    def _order(self, order: str, *names: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as server:
            server.execute(sql.SQL(order).format(*map(sql.Identifier, names)))  # pyright: ignore[reportArgumentType]


def _shape(connection: psycopg.Connection) -> str:
    found = connection.execute(_SHAPE.encode()).fetchone()
    assert found is not None
    return str(found[0])


def _copied(connection: psycopg.Connection, table: str) -> bytes:
    def parts() -> Iterator[bytes]:
        with connection.cursor().copy(f"COPY {table} TO STDOUT".encode()) as copy:
            yield from (bytes(part) for part in copy)

    return b"".join(parts())
