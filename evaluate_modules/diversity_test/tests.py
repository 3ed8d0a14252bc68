"""Hand-worked cases: the inputs of ``compute`` and what they must give."""

test_cases = [
    {
        "votes": ["first", "first", "second", "second", "equal", "unable"],
        "concepts": ["apple", "apple", "apple", "tree", "chair", "bridge"],
        "result": {"wins": 1, "losses": 1, "ties": 1, "p_value": 1.0, "win_rate": 0.5, "win_rate_n": 2},
    },
    {
        "votes": ["first", "second", "equal"],
        "concepts": ["apple", "tree", "chair"],
        "first_scores": [2.0, 3.0, 1.1],
        "second_scores": [1.0, 2.0, 1.0],
        "result": {"autorater_accuracy": 0.5, "equal_auc": 1.0, "autorater_win_rate": 1.0},
    },
]
