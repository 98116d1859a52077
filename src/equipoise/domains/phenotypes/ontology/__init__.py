"""Terms of an ontology, their graph and similarity, and the index that finds them."""
