"""``eq accounts``: embeddings of trees."""
