"""The page of an ``evaluate`` module's Space: paste or upload a table, or take the example; see value, interval and n.

A Space folder holds its module, README, ``example.csv`` and an ``app.py`` that describes the table's columns; what all the
pages share is here. Nothing is sent anywhere: no analytics, no share link.
"""

from __future__ import annotations

import html
import math
import os
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from protoscore.errors import ProtoscoreError, needs
from protoscore.uploads import MAX_BYTES, MAX_ROWS, Column, TableError, read_table, shown

__all__ = ["Choice", "Column", "launch", "metric_page"]


NAMES = {
    "s_dis": "s_DIS", "s_amb": "s_AMB", "aurc": "AURC", "excess_aurc": "Excess AURC", "equal_auc": "AUC of equal",
    "gmf1": "Group-macro-F1", "macro_f1": "Macro-F1", "worst_group_f1": "Worst group's macro-F1", "f1_gap": "F1 gap",
    "p_value": "p-value", "autorater_p_value": "Autorater p-value", "vendi_score": "Vendi score",
    "mean_vendi_score": "Mean Vendi score",
}  # fmt: skip


class Choice(NamedTuple):
    """A named parameter of the metric that the page offers; the first value is the default."""

    name: str
    values: tuple[Any, ...]
    about: str


def metric_page(
    folder: Path,
    columns: list[Column],
    choices: tuple[Choice, ...] = (),
    config: str | None = None,
    example: str = "example.csv",
) -> Any:
    """A ``gradio.Blocks`` for the module in ``folder``; the title comes from its README, the text below it from the module.

    Args:
        columns: of the table; their names are the arguments of the metric's ``compute``.
        config: the module's config.
        example: the file of ``folder`` that "Take the example" takes.

    Raises:
        MissingExtra: gradio is not installed.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    with needs("space"):
        import gradio as gr
    about = " ".join(_load(folder, config).description.split())
    card = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---")[1])
    sample = (folder / example).read_text(encoding="utf-8")

    def run(text: str, path: str | None, *values: Any) -> str:
        options = {choice.name: value for choice, value in zip(choices, values)}
        try:
            return render(compute(folder, _given(text, path), columns, options, config))
        except ProtoscoreError as error:
            return f'<p role="alert" class="ps-error">{html.escape(str(error))}</p>'

    with gr.Blocks(title=card["title"], analytics_enabled=False) as page:
        gr.Markdown(f"# {card['emoji']} {card['title']}\n\n{about}")
        with gr.Row():
            with gr.Column(scale=2):
                text = gr.Textbox(
                    label="Paste a table", lines=9, max_lines=9, max_length=MAX_BYTES, placeholder=_few_lines(sample),
                    info="CSV with a header line; comma, semicolon or tab.",
                )  # fmt: skip
                limits = f"up to {MAX_BYTES // 1_000_000} MB, {MAX_ROWS:,} rows"
                path = gr.File(label=f"or upload a CSV ({limits})", file_types=[".csv", ".tsv", ".txt"], height=150)
                fields = [gr.Dropdown(list(c.values), value=c.values[0], label=c.name, info=c.about) for c in choices]
                with gr.Row():
                    take = gr.Button("Take the example")
                    go = gr.Button("Compute", variant="primary")
            with gr.Column(scale=3):
                result = gr.HTML(value='<p class="ps-hint">The result appears here.</p>', elem_id="result")
        gr.HTML(_columns_table(columns))
        inputs = [text, path, *fields]
        go.click(run, inputs, result, api_name="compute")
        take.click(lambda: (sample, None), None, [text, path], api_visibility="private").then(
            run, inputs, result, api_visibility="private"
        )
    return page


def launch(page: Any, **options: Any) -> Any:
    """Serve the page without a share link, analytics or files beyond the upload limit."""
    style = files("protoscore") / "templates" / "metric_page.css"
    defaults = {"share": False, "max_file_size": MAX_BYTES, "footer_links": ["api"], "css": style.read_text(encoding="utf-8")}
    return page.launch(**defaults | options)


def compute(
    folder: Path, data: bytes, columns: list[Column], options: dict[str, Any], config: str | None = None
) -> dict[str, Any]:
    """The metric's result on a table.

    Raises:
        ProtoscoreError: the table or a value in it is not what the metric needs.
    """
    return _load(folder, config).compute(**read_table(data, columns), **options)


def _load(folder: Path, config: str | None) -> Any:
    import evaluate

    return evaluate.load(str(folder), config, keep_in_memory=True)


def _given(text: str, path: str | None) -> bytes:
    if path:
        file = Path(path)
        if file.stat().st_size > MAX_BYTES:
            raise TableError(f"the file has {file.stat().st_size / 1e6:.1f} MB; up to {MAX_BYTES // 1_000_000} MB are read")
        return file.read_bytes()
    if not (text or "").strip():
        raise TableError("paste a table or upload a CSV first, or take the example")
    return text.encode("utf-8", "replace")


def render(result: dict[str, Any]) -> str:
    """A metric's flat result (see :func:`protoscore.stats.resampling.flat`) as HTML tables, everything in it escaped."""
    tables, facts, curves = [_table("Result", [("", result)])], [], []
    for name, value in result.items():
        if not isinstance(value, dict):
            if not _belongs(name, result):
                facts.append((_words(name), _text(value)))
        elif all(isinstance(part, dict) for part in value.values()):
            tables.append(_table(_words(name), list(value.items())))
        else:
            curves.append(_curve(name, value))
    environment = Environment(loader=PackageLoader("protoscore", "templates"), autoescape=True, undefined=StrictUndefined)
    template = environment.get_template("metric_result.html.jinja")
    return template.render(tables=[t for t in tables if t["rows"]], facts=facts, curves=curves)


def _belongs(name: str, result: dict[str, Any]) -> bool:
    """Whether ``name`` is an estimate or one of its companions, which a table shows."""
    return any(name == base or name in (f"{base}_interval", f"{base}_n", f"{base}_left_out") for base in _estimates(result))


def _estimates(result: dict[str, Any]) -> list[str]:
    return [name for name in result if f"{name}_interval" in result]


def _table(title: str, parts: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    rows = []
    for group, part in parts:
        for name in _estimates(part):
            value, (low, high) = part[name], part[f"{name}_interval"]
            drawn = math.isfinite(value) and math.isfinite(low)
            rows.append({
                "group": shown(group), "measure": _words(name), "value": value, "value_text": _text(value),
                "low": low if drawn else None, "high": high, "interval_text": f"{low:.3f} – {high:.3f}" if drawn else "",
                "n": f"{part[f'{name}_n']:,}", "left_out": f"{part[f'{name}_left_out']:,}",
            })  # fmt: skip
    ends = [v for row in rows if row["low"] is not None for v in (row["low"], row["high"], row["value"])]
    floor = (-1 if min(ends) < 0 else 0) if ends and min(ends) >= -1 and max(ends) <= 1 else None
    return {"title": title, "rows": rows, "grouped": bool(parts[0][0]) if parts else False, "floor": floor}


def _curve(name: str, axes: dict[str, list[float]]) -> dict[str, Any]:
    """Two lists of values in [0, 1] as the points of a line in a 300 x 150 drawing."""
    (x_name, x), (y_name, y) = axes.items()
    step = max(1, len(x) // 300)
    points = " ".join(f"{40 + 300 * a:.1f},{160 - 150 * b:.1f}" for a, b in list(zip(x, y))[::step])
    return {"title": _words(name), "x": _words(x_name), "y": _words(y_name), "points": points}


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(v) for v in value[:20]) + (" …" if len(value) > 20 else "") or "none"
    if isinstance(value, float):
        return (
            "undefined"
            if math.isnan(value)
            else f"{value:.4g}"
            if abs(value) >= 100 or 0 < abs(value) < 1e-3
            else f"{value:.3f}"
        )
    return shown(value)


def _words(name: str) -> str:
    return NAMES.get(name) or name.replace("_", " ").capitalize()


def _few_lines(example: str) -> str:
    return "\n".join(line[:60] for line in example.splitlines()[:5])


def _columns_table(columns: list[Column]) -> str:
    rows = "".join(
        f"<tr><th><code>{'all other columns' if c.kind == 'vector' else c.name}</code></th>"
        f"<td>{'needed' if c.required else 'optional'}</td><td>{html.escape(c.about)}</td></tr>"
        for c in columns
    )
    return f'<div class="ps"><table><caption>Columns of the table</caption><tbody>{rows}</tbody></table></div>'
