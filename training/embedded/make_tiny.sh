#!/usr/bin/env bash
# make tiny-model: the shipped evaluator, from the shipped judge (make scene-judge makes that from nothing): training, export,
# measurement on one-knob scenes and on the freer form, card.
set -euo pipefail
bin=$1
runs=runs
card=model_cards/protoscore-tiny
measure() { # name, triplets, further arguments of build.py
  "$bin/python" dataset_scripts/protobias/build.py --out "$runs/$1" --triplets "$2" --renditions 1 --split test --drawable --seed 20261201 "${@:3}"
  "$bin/protoscore" score "$runs/$1" -s constant -s random -s protoscore --out "$runs/$1_scores"
  "$bin/protoscore" report "$runs/$1_scores" --dataset "$runs/$1" --resamples 10000
}
"$bin/python" -m training.protoscore.train --recipe tiny_grounded --output_dir "$runs/tiny_grounded"
"$bin/python" -m training.protoscore.train --recipe tiny_subjects --output_dir "$runs/tiny_subjects"
"$bin/python" -m training.protoscore.train --recipe tiny_subjects_more --output_dir "$runs/tiny_subjects_more"
"$bin/python" -m training.embedded.export_tiny "$runs/tiny_subjects_more" protoscore/assets/protoscore-tiny
measure fresh_test 1000
measure free_test 300 --nuisance
cp "$runs/fresh_test_scores/results.json" "$card.results.json"
cp "$runs/free_test_scores/results.json" "$card.nuisance.results.json"
"$bin/python" -m model_cards.write_card "$card.md.jinja" "$card.results.json" protoscore/assets/protoscore-tiny
