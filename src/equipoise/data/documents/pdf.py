"""The text layer of PDF files, by pypdf."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.data.text import PathLike, read_bytes, shown
from equipoise.errors import EquipoiseError, FormatError, InputError, MissingExtraError
from equipoise.extras import install_command
from equipoise.types import need


def pdf_text(path: PathLike) -> str:
    """The text of all pages, a blank line between two; words hyphenated at line ends are left alone.

    A file that only its owner's password protects is read. One that needs a password to be opened, and one
    whose pages are pictures, are errors.
    """
    engine = need("pypdf", extra="documents")
    data, name = read_bytes(path), shown(path)
    with _quiet("pypdf"):
        try:
            reader = engine.PdfReader(io.BytesIO(data))
            if reader.is_encrypted and not reader.decrypt(""):
                raise _locked(name)
            pages = [_whole_characters(page.extract_text()).strip() for page in reader.pages]
        except EquipoiseError:
            raise
        except engine.errors.DependencyError as error:  # as late as at the first page, for some ciphers
            raise MissingExtraError(
                f"{name} cannot be read without a further package: {error}",
                hint=f"{install_command('documents')} brings what opens encrypted files",
            ) from error
        except Exception as error:  # a damaged file fails in the parser with whatever it meets
            reason = str(error) or type(error).__name__
            raise FormatError(
                f"{name} is a PDF that cannot be read: {reason}",
                hint=f"qpdf --check {name} says what is damaged; printing it to a new PDF often repairs it",
            ) from error
    if not any(pages):
        count = f"{len(pages)} page{'' if len(pages) == 1 else 's'}"
        raise InputError(
            f"{name} has {count} and no text: it is a scan or a set of pictures",
            hint=f"ocrmypdf {name} with-text.pdf adds the text",
        )
    return "\n\n".join(filter(None, pages))


def _locked(name: str) -> InputError:
    """What the empty password, which readers try without asking, does not open."""
    return InputError(
        f"{name} is encrypted and needs a password",
        hint=f"qpdf --decrypt --password=... {name} open.pdf writes a copy without one",
    )


def _whole_characters(text: str) -> str:
    """Surrogates put together where they pair up, replaced where a font maps to half of a character."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a library's complaints off the terminal; whoever set up logging still gets them."""
    logger, handler = logging.getLogger(name), logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
