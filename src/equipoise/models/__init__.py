"""Embedding models by spec: registry, embedder, cache, chunking, lexical retrieval, fusion, reranking and stores."""
