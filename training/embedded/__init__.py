"""The models that ship: the base of protoscore-tiny, and scene-judge-tiny from nothing."""
