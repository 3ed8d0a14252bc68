"""Hand-worked cases: the inputs of ``compute`` and what they must give."""

test_cases = [
    {
        "predictions": [None, "a", "b", "unspecified", "a"],
        "references": ["a", "a", "b", "b", "a"],
        "groups": ["x", "x", "y", "y", "y"],
        "result": {
            "gmf1": (1 + (1 + 2 / 3) / 2) / 2,
            "macro_f1": 5 / 6,
            "accuracy": 0.75,
            "accuracy_left_out": 1,
            "worst_group": "y",
        },
    },
    {
        "predictions": ["a", "b", "unspecified", "a"],
        "references": ["a", "b", "b", "a"],
        "groups": ["x", "y", "y", "y"],
        "abstention": "left_out",
        "result": {"gmf1": 1.0, "f1_gap": 0.0, "accuracy_n": 3},
    },
]
