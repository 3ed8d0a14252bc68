"""Hand-worked cases: the inputs of ``compute`` and what they must give."""

test_cases = [
    {
        "score_correct": [3.0, 1.0, 2.0, None],
        "score_adv": [1.0, 2.0, 2.0, 1.0],
        "result": {"pairwise_accuracy": 1 / 3, "ties": 1, "pairwise_accuracy_n": 3, "pairwise_accuracy_left_out": 1},
    },
    {
        "score_correct": [3.0, 1.0],
        "score_adv": [1.0, 3.0],
        "proto_correct": [4.0, 4.0],
        "non_violated": [2.0, 2.0],
        "human": ["correct", "adversarial"],
        "result": {"pairwise_accuracy": 0.5, "congruent": 1.0, "sensitivity": 0.75, "gap": 0.5, "kappa": 1.0},
    },
    {
        "score_correct": [3.0, 1.0],
        "score_adv": [1.0, 3.0],
        "proto_correct": [4.0, 4.0],
        "non_violated": [2.0, 2.0],
        "foils": [[[2.0, 5.0], [3.0, 3.0], [0.0, 0.0]], [[0.0, 0.0], [2.0, 0.0], [0.0, 9.0]]],
        "result": {"element_extra": 0.75, "element_environment": 0.5, "element_subject": 0.75, "elements": 2 / 3},
    },
]
