"""The models that ship: scene-judge-tiny from nothing, and from it protoscore-tiny; a base for comparing mixes."""
