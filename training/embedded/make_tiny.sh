#!/usr/bin/env bash
# make tiny-model: the shipped checkpoint, from nothing: base, evaluator, measurement, card.
set -euo pipefail
bin=$1
runs=runs
"$bin/python" -m training.embedded.train_tiny_base --recipe tiny_base --output_dir "$runs/tiny_base"
"$bin/python" -m training.protoscore.train --recipe tiny_counterbalanced --output_dir "$runs/tiny_counterbalanced"
"$bin/python" -m training.embedded.export_tiny "$runs/tiny_counterbalanced" protoscore/assets/protoscore-tiny
"$bin/python" dataset_scripts/protobias/build.py --out "$runs/fresh_test" --triplets 1000 --renditions 1 --split test --drawable --seed 20261129
"$bin/protoscore" score "$runs/fresh_test" -s constant -s random -s protoscore --out "$runs/tiny_results"
"$bin/protoscore" report "$runs/tiny_results" --dataset "$runs/fresh_test" --resamples 10000
cp "$runs/tiny_results/results.json" model_cards/protoscore-tiny.results.json
"$bin/python" -m model_cards.write_card model_cards/protoscore-tiny.md.jinja model_cards/protoscore-tiny.results.json protoscore/assets/protoscore-tiny
