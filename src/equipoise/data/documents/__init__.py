"""Documents as plain text: .txt, .md, .rst, .html, .pdf and .docx, one file or a folder of them."""

from equipoise.data.documents.document import Document
from equipoise.data.documents.read import SUFFIXES, read_document, read_documents

__all__ = ["SUFFIXES", "Document", "read_document", "read_documents"]
