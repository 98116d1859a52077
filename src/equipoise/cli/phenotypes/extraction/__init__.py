"""``eq phenotypes extraction``: terms found in documents, measured against what people found."""
