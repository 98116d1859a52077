"""The page as data: what a report says, before anybody decides how it looks."""
