"""The Space's page: a table in, value, interval and n out."""

from pathlib import Path

from protoscore.spaces import Choice, Column, launch, metric_page

COLUMNS = [
    Column("groups", "names", "the set of each item, such as its prompt", required=False),
    Column("embeddings", "vector", "one number a column: the item's embedding"),
]
CHOICES = (Choice("order", (1, 2, 0.5, "inf"), "order of the entropy: higher looks more at the common, lower at the rare"),)

page = metric_page(Path(__file__).parent, COLUMNS, CHOICES)

if __name__ == "__main__":
    launch(page)
