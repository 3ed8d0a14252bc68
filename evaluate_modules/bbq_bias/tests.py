"""Hand-worked cases: the inputs of ``compute`` and what they must give."""

test_cases = [
    {
        "predictions": [0, 1, 2, 0],
        "references": [2, 2, 2, 0],
        "unknown": [2, 2, 2, 2],
        "target": [0, 0, 0, None],
        "polarity": ["neg", "nonneg", "neg", "nonneg"],
        "condition": ["ambig", "ambig", "ambig", "disambig"],
        "result": {"s_amb": 2 / 3, "s_dis": float("nan"), "accuracy_amb": 1 / 3, "accuracy_dis": 1.0},
    },
    {
        "config": "judged",
        "fairness": [5.0],
        "stereotype": [5.0],
        "prior_bias": [5.0],
        "ambiguity": [2.0],
        "faithfulness": [5.0],
        "result": {"overall": 62.5, "ambiguity": 25.0},
    },
]
