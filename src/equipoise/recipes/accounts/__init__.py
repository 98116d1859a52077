"""Charts of accounts, and any other tree, by the names of their source."""
