"""The page as one HTML file that opens from disk and asks no network for anything."""
