#!/usr/bin/env bash
# make scene-judge: the embedded judge, from the tiny base (which make_tiny.sh makes too): reader, judge, measurement, card.
set -euo pipefail
bin=$1
runs=runs
asset=protoscore/assets/scene-judge-tiny
[ -f "$runs/tiny_base/config.json" ] || "$bin/python" training/train_tiny_base.py --recipe tiny_base --output_dir "$runs/tiny_base"
"$bin/python" training/train_scene_reader.py --recipe scene_reader --output_dir "$runs/scene_reader"
"$bin/python" training/train_scene_judge.py --recipe scene_judge --output_dir "$runs/scene_judge"
"$bin/python" training/export_tiny.py "$runs/scene_judge" "$asset"
"$bin/python" training/measure_judge.py "$asset" --out "$runs/judge_measured" --results model_cards/scene-judge-tiny.results.json
"$bin/python" model_cards/write_card.py model_cards/scene-judge-tiny.md.jinja model_cards/scene-judge-tiny.results.json "$asset"
