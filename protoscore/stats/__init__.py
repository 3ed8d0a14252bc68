"""Statistics: pure functions on arrays. No files, no models, no text."""
