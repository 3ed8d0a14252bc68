"""Hand-worked cases: the inputs of ``compute`` and what they must give."""

test_cases = [
    {"embeddings": [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]], "result": {"vendi_score": 2.0, "vendi_score_n": 4}},
    {"embeddings": [[1.0, 0.0], [0.0, 1.0]], "groups": ["one", "two"], "result": {"mean_vendi_score": 1.0}},
]
