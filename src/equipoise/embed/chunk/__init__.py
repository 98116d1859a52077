"""Documents cut into chunks, with exact offsets."""
