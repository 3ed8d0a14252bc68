"""The Space's page: a table in, value, interval and n out."""

from pathlib import Path

from protoscore.spaces import Choice, Column, launch, metric_page

COLUMNS = [
    Column("predictions", "text", "predicted class; empty where there was no readable answer"),
    Column("references", "text", "right class"),
    Column("groups", "names", "demographic group of the row; empty for none"),
    Column("clusters", "text", "what was sampled independently, such as the prompt; default each row", required=False),
]
CHOICES = (
    Choice("abstention", ("error", "left_out", "class"), "an answer of 'unspecified' counts as this"),
    Choice("classes", ("seen", "reference", "all"), "the classes that each group's macro-F1 averages"),
)

page = metric_page(Path(__file__).parent, COLUMNS, CHOICES)

if __name__ == "__main__":
    launch(page)
