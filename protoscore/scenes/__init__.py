"""The scene world: structured specs drawn from vector sprites, with the geometry of everything drawn. Never a photograph."""
