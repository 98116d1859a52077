"""Document-level term extraction: evaluation, comparison and tuning on annotated documents."""
