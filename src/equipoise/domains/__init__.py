"""The five systems by their own names: thin vocabularies on top of the one pipeline."""
