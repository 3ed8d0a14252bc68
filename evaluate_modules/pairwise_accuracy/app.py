"""The Space's page: a table in, value, interval and n out."""

from pathlib import Path

from protoscore.spaces import Column, launch, metric_page

COLUMNS = [
    Column("score_correct", "number", "the metric's score of the correct image"),
    Column("score_adv", "number", "its score of the prototypical, wrong image under the same text"),
    Column("proto_correct", "number", "its score of the correct image of the prototypical subject", required=False),
    Column("non_violated", "number", "its score of the wrong image of the other subject", required=False),
    Column("human", "text", "what people prefer: correct, adversarial, or empty for no preference", required=False),
    Column("groups", "names", "the domain of the pair", required=False),
    Column("clusters", "text", "the triplet of the pair: rows of one triplet are not independent", required=False),
]

page = metric_page(Path(__file__).parent, COLUMNS)

if __name__ == "__main__":
    launch(page)
