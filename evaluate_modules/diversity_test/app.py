"""The Space's page: a table in, value, interval and n out."""

from pathlib import Path

from protoscore.spaces import Choice, Column, launch, metric_page

COLUMNS = [
    Column("votes", "text", "first, second, equal or unable: whose set is more diverse"),
    Column("concepts", "text", "what the pictures show"),
    Column("comparisons", "text", "which side-by-side of the concept", required=False),
    Column("first_scores", "number", "an autorater's score of the first set, such as its Vendi score", required=False),
    Column("second_scores", "number", "and of the second set", required=False),
]
CHOICES = (
    Choice("tie_rule", ("drop", "half", "loss"), "concepts that are equal count as this in the test"),
    Choice("split", ("equal", "left_out"), "votes without a single mode count as this"),
)

page = metric_page(Path(__file__).parent, COLUMNS, CHOICES)

if __name__ == "__main__":
    launch(page)
