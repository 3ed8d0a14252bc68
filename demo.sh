#!/usr/bin/env bash
# make demo: from a taxonomy to a bias report. Each line is a command that you can type yourself.
set -euo pipefail
bin=$1
out=$2
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
trap 'echo "demo: stopped; make demo goes on from here" >&2; exit 2' INT

say "1/4  200 triplets of animals, ten pictures each: right, one detail wrong, one noun wrong"
"$bin/python" dataset_scripts/protobias/build.py --out "$out/dataset" --domains animals --triplets 200 --renditions 1 --split test --drawable --seed 2026

say "2/4  training the paper's recipe, live and small (about 4 minutes)"
if [ ! -d "$out/paper" ]; then # a folder of this name is a finished training; a stopped one starts again
  rm -rf "$out/paper.part"
  "$bin/python" -m training.protoscore.train --recipe tiny_paper --output_dir "$out/paper.part"
  mv "$out/paper.part" "$out/paper"
fi

say "3/4  scoring with a floor, the model just trained, the one that ships, and one that reads nouns only"
"$bin/protoscore" score "$out/dataset" -s random -s "protoscore:$out/paper" -s protoscore -s docs/examples/bag_of_nouns.py --out "$out/run"

say "4/4  report"
"$bin/protoscore" report "$out/run" --dataset "$out/dataset"

say "Look at $out/run/report.html in a browser; then type: $bin/protoscore rate 'A bird with exactly two stones nearby.' YOUR_PICTURE.png"
