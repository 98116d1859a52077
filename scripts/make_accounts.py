"""Make the sample database from the sample charts of accounts.

python scripts/make_accounts.py          rewrites src/equipoise/io/samples/accounts/books.db

The charts are written by hand, one CSV file per business; only the database is generated. Both businesses use the
same account numbers, so a reader that ignores the business id gets a wrong tree.
"""

from __future__ import annotations

import argparse
import csv
import sqlite3
from contextlib import closing
from pathlib import Path

ACCOUNTS = Path(__file__).parents[1] / "src" / "equipoise" / "io" / "samples" / "accounts"
SCHEMA = """
CREATE TABLE accounts (
    business_id TEXT NOT NULL,
    id          TEXT NOT NULL,
    parent_id   TEXT,
    name        TEXT NOT NULL,
    PRIMARY KEY (business_id, id),
    FOREIGN KEY (business_id, parent_id) REFERENCES accounts (business_id, id)
) WITHOUT ROWID
"""
INSERT = "INSERT INTO accounts (business_id, id, parent_id, name) VALUES (?, ?, ?, ?)"


def rows(path: Path) -> list[tuple[str, str, str | None, str]]:
    """The accounts of one business; its id is the name of the file."""
    with open(path, encoding="utf-8", newline="") as stream:
        return [(path.stem, row["id"], row["parent_id"] or None, row["name"]) for row in csv.DictReader(stream)]


def make(folder: Path, target: Path) -> int:
    """Write the database, and return the number of accounts."""
    target.unlink(missing_ok=True)
    accounts = [row for path in sorted(folder.glob("*.csv")) for row in rows(path)]
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(SCHEMA)
        with connection:
            connection.executemany(INSERT, accounts)
        connection.execute("VACUUM")
    return len(accounts)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", type=Path, default=ACCOUNTS / "books.db")
    target = parser.parse_args().target
    print(f"{target}: {make(ACCOUNTS, target)} accounts")


if __name__ == "__main__":
    main()
