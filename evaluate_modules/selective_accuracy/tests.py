"""Hand-worked cases: the inputs of ``compute`` and what they must give."""

test_cases = [
    {
        "predictions": ["a", "unspecified", "b", None],
        "references": ["a", "a", "a", "b"],
        "confidences": [0.9, 0.2, 0.6, 0.5],
        "result": {
            "coverage": 2 / 3,
            "accuracy": 1 / 3,
            "selective_accuracy": 0.5,
            "worst_case": 0.25,
            "best_case": 0.5,
            "aurc": 0.25,
            "excess_aurc": 0.0,
        },
    },
]
