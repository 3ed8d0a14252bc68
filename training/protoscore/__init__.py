"""ProtoScore: reward training on pairs of pictures, its recipes, and the comparison of mixes."""
