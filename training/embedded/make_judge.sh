#!/usr/bin/env bash
# make scene-judge: the embedded judge is taught its list of tasks again, from the weights that ship; then measurement and card.
# With a second argument, "anew", it starts from nothing: sight first, then the questions.
set -euo pipefail
bin=$1
runs=runs
asset=protoscore/assets/scene-judge-tiny
if [ "${2:-}" = anew ]; then
  "$bin/python" -m training.embedded.train_scene_sight --recipe scene_sight --output_dir "$runs/scene_sight"
  "$bin/python" -m training.embedded.train_scene_judge --recipe scene_judge --start "$runs/scene_sight" --output_dir "$runs/scene_judge"
else
  "$bin/python" -m training.embedded.train_scene_judge --recipe scene_judge_more --start "$asset" --output_dir "$runs/scene_judge"
fi
"$bin/python" -m training.embedded.export_tiny "$runs/scene_judge" "$asset"
"$bin/python" -m training.embedded.measure_judge "$asset" --out "$runs/judge_measured" --results model_cards/scene-judge-tiny.results.json
"$bin/python" -m model_cards.write_card model_cards/scene-judge-tiny.md.jinja model_cards/scene-judge-tiny.results.json "$asset"
