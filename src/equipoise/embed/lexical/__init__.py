"""Systems that look at words: BM25, TF-IDF, and what they are made of."""
