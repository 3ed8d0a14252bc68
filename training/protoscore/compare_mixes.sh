#!/usr/bin/env bash
# The mixes of the two recipes and three more, at the embedded size, all from one base, measured on one set of fresh test
# triplets; then a twin that never saw six subjects, measured on triplets with those.
#   bash training/protoscore/compare_mixes.sh PATH_TO_BIN [NUMBER_OF_PAIRS]
set -euo pipefail
bin=$1
pairs=${2:-32000}
runs=runs
held_out="shoebill armadillo hammock segway jewish_woman muslim_man"
test_set() { # folder, further arguments of build.py
  [ -f "$1/manifest.json" ] || "$bin/python" dataset_scripts/protobias/build.py --out "$1" --triplets 1000 --renditions 1 \
    --split test --drawable --seed 20261129 "${@:2}"
}
measure() { # name, model, test set, what it is
  "$bin/protoscore" score "$3" -s "protoscore:$2" --out "$runs/scores_$1"
  "$bin/protoscore" report "$runs/scores_$1" --dataset "$3" --resamples 10000
  "$bin/python" -m training.protoscore.compare_mixes add "$1" --report "$runs/scores_$1/results.json" --model "$2" --test-set "$4"
}
mix() { # name, shares
  "$bin/python" -m training.protoscore.train --recipe tiny_counterbalanced --pairs "$pairs" \
    --incongruent "$2" --congruent "$3" --same_subject "$4" --output_dir "$runs/mix_$1"
  measure "$1" "$runs/mix_$1" "$runs/fresh_test" "fresh test triplets"
}
[ -d "$runs/tiny_base" ] || "$bin/python" -m training.embedded.train_tiny_base --recipe tiny_base --output_dir "$runs/tiny_base"
test_set "$runs/fresh_test"
mix paper 1.0 0.0 0.0
mix counterbalanced 0.34 0.33 0.33
mix three_quarters 0.75 0.25 0.0
mix half 0.5 0.5 0.0
mix same_subject 0.0 0.0 1.0
# shellcheck disable=SC2086
"$bin/python" -m training.embedded.train_tiny_base --recipe tiny_base --held_out $held_out --output_dir "$runs/base_held_out"
# shellcheck disable=SC2086
"$bin/python" -m training.protoscore.train --recipe tiny_counterbalanced --model_name_or_path "$runs/base_held_out" \
  --held_out $held_out --output_dir "$runs/held_out"
# shellcheck disable=SC2086
test_set "$runs/held_out_test" --subjects $held_out
measure held_out "$runs/held_out" "$runs/held_out_test" "subjects that training never showed"
"$bin/python" -m training.protoscore.compare_mixes table
