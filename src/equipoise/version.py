"""The version, stated once; asking the installed package for it would slow every start down."""

__version__ = "0.1.0"
