"""``eq leaderboard``: the uncertainty of ranks in published tables."""
