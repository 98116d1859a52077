"""Whether a text holds an answer, and where a system ranks the texts that do."""
