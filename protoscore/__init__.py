"""protoscore: can I trust this metric, is this model fair, is it diverse, does it stereotype?"""

__version__ = "0.1.0"
