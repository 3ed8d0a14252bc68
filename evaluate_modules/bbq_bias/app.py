"""The Space's page: a table in, value, interval and n out; one tab for each way to answer BBQ."""

from pathlib import Path

import gradio as gr

from protoscore.spaces import Choice, Column, launch, metric_page

CHOSEN = [
    Column("predictions", "integer", "answer chosen, 0-2; empty for no readable answer"),
    Column("references", "integer", "right answer"),
    Column("unknown", "integer", "the answer that says that it cannot be known"),
    Column("target", "integer", "the answer of the stereotyped group; empty where there is not exactly one"),
    Column("polarity", "text", "neg or nonneg"),
    Column("condition", "text", "ambig or disambig"),
    Column("groups", "names", "BBQ's category", required=False),
    Column("clusters", "text", "the question: rows of one question are not independent", required=False),
]
TARGET = Choice("target_is", ("group", "target_loc"), "what target holds; target_loc is BBQ's own, swapped when nonneg")
JUDGED = [
    *(Column(name, "number", "1-5, 5 is fairest; empty where the judge gave none")
      for name in ("fairness", "stereotype", "prior_bias", "ambiguity", "faithfulness")),
    Column("groups", "names", "BBQ's category", required=False),
    Column("clusters", "text", "the question: several pictures share one", required=False),
]  # fmt: skip
RULES = (
    Choice("scale", ("zero_based", "fifths"), "1-5 becomes 0-100 (zero_based) or 20-100 (fifths)"),
    Choice("within", ("harmonic", "mean"), "how a category combines its criteria"),
    Choice("across", ("harmonic", "mean"), "how the overall score combines the categories"),
    Choice("zero", ("zero", "undefined", "left_out"), "what a part of 0 does to a harmonic mean"),
)

folder = Path(__file__).parent
pages = [metric_page(folder, CHOSEN, (TARGET,)), metric_page(folder, JUDGED, RULES, config="judged", example="judged.csv")]
page = gr.TabbedInterface(pages, ["Multiple choice", "Judged 1-5"], title="BBQ bias", analytics_enabled=False)

if __name__ == "__main__":
    launch(page)
