"""ProtoScore: a multimodal sequence classifier with one label, its processor, and its loading and saving."""
