"""Statistics: pure functions on arrays. No files, no models, no text.

Every function that estimates something returns an :class:`~protoscore.stats.resampling.Estimate`: value, 95 % interval, n,
rows left out, ties. Intervals are bootstraps over clusters (the triplet, the question, the prompt), not over rows.
"""
