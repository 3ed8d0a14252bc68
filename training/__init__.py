"""How the models are trained, in two shelves: ``training.protoscore`` (the evaluator) and ``training.embedded`` (what ships).

Nothing here is installed; every script is a module that is run from the root of the repository.
"""
