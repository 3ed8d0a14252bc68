#!/usr/bin/env bash
# make scene-judge: the embedded judge from nothing: sight, judge, measurement, card.
set -euo pipefail
bin=$1
runs=runs
asset=protoscore/assets/scene-judge-tiny
"$bin/python" training/train_scene_sight.py --recipe scene_sight --output_dir "$runs/scene_sight"
"$bin/python" training/train_scene_judge.py --recipe scene_judge --start "$runs/scene_sight" --output_dir "$runs/scene_judge"
"$bin/python" training/export_tiny.py "$runs/scene_judge" "$asset"
"$bin/python" training/measure_judge.py "$asset" --out "$runs/judge_measured" --results model_cards/scene-judge-tiny.results.json
"$bin/python" model_cards/write_card.py model_cards/scene-judge-tiny.md.jinja model_cards/scene-judge-tiny.results.json "$asset"
