"""Tenants kept apart: business ids compared byte by byte, whatever a database takes for equal.

Collations may take ``acme`` for ``ACME`` or ``acme`` for ``acme `` with a blank; none of them has a say here.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from equipoise.errors import ParameterError, StoreError
from equipoise.types import need

if TYPE_CHECKING:
    from sqlalchemy import Connection

EXTRA = "accounts"
MYSQL = ("mysql", "mariadb")
_LISTED = 5


def exact(value: Any, dialect: str) -> Any:
    """The text of a column or of a parameter as an expression that is equal only where every byte is.

    Numbers are their digits; SQLite's real numbers that are whole have no decimals.
    """
    sql = need("sqlalchemy", extra=EXTRA)
    if dialect == "sqlite":
        whole = sql.cast(value, sql.BigInteger)
        is_whole = sql.and_(sql.func.typeof(value) == "real", value == whole)
        text = sql.case((is_whole, sql.cast(whole, sql.Text)), else_=sql.cast(value, sql.Text))
        return sql.cast(text, sql.LargeBinary)
    if dialect in MYSQL:
        from sqlalchemy.dialects.mysql import VARCHAR

        # One character set first: the bytes of a latin1 column are others.
        return sql.cast(sql.cast(value, VARCHAR(charset="utf8mb4")), sql.LargeBinary)
    text = sql.cast(value, sql.Text)
    return sql.collate(text, "C") if dialect == "postgresql" else text


def is_business(column: Any, business_id: str, dialect: str) -> Any:
    """The condition that a column holds this business id; the id is a bound parameter."""
    sql = need("sqlalchemy", extra=EXTRA)
    asked = sql.bindparam("business", business_id, type_=sql.Text())
    if dialect == "sqlite":
        return exact(column, dialect) == sql.cast(asked, sql.LargeBinary)
    return exact(column, dialect) == (exact(asked, dialect) if dialect in MYSQL else asked)


def checked_business(business_id: str | int) -> str:
    """A business id as text that a database can hold."""
    text = str(business_id)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"the business id {text!r} is no text in UTF-8", hint="write it as the database does"
        ) from error
    return text


def refuse_strangers(found: list[Any], business_id: str, source: str) -> None:
    """A second look at what the database selected: a row of another business is never used."""
    strangers = sum(_text(each) != business_id for each in found)
    if strangers:
        raise StoreError(
            f"{source} gave {strangers:,} rows of another business than {business_id!r}; none was used",
            hint="this database compares texts in a way that is unknown here; read a view of one business",
        )


def refuse_several(connection: Connection, column: Any, source: str) -> None:
    """Without a business id the rows must be those of one business."""
    sql = need("sqlalchemy", extra=EXTRA)
    chosen = sql.select(exact(column, connection.dialect.name)).distinct()
    found = [_text(each) for each in connection.scalars(chosen)]
    if len(found) < 2:
        return
    named = sorted(each for each in found if each is not None)
    shown = ", ".join(named[:_LISTED]) + (", ..." if len(named) > _LISTED else "")
    nameless = ", and rows that name none" if None in found else ""
    noun = "business" if len(named) == 1 else "businesses"
    raise ParameterError(
        f"{source} holds the accounts of {len(named)} {noun}: {shown}{nameless}",
        hint=f"name one of them as the business id: --business-id {quote(named[0])}",
    )


def _text(value: Any) -> str | None:
    return bytes(value).decode("utf-8", "surrogateescape") if isinstance(value, bytes | memoryview) else value
