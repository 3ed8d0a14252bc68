"""The Space's page: a table in, value, interval and n out."""

from pathlib import Path

from protoscore.spaces import Column, launch, metric_page

COLUMNS = [
    Column("predictions", "text", "predicted label; 'unspecified' abstains, empty is not a readable answer"),
    Column("references", "text", "right label"),
    Column("confidences", "number", "how sure the judge is, on any scale", required=False),
    Column("groups", "names", "report these apart", required=False),
    Column("clusters", "text", "what was sampled independently; default each row", required=False),
]

page = metric_page(Path(__file__).parent, COLUMNS)

if __name__ == "__main__":
    launch(page)
