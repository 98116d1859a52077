"""Trees from databases and files, and the embedders trained on them."""
