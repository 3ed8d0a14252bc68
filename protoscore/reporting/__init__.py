"""What a table of scores says: estimates with intervals, words, pages, comparisons of runs, leaderboard rows."""
