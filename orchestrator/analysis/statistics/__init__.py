"""Statistics that belong to no question of a study."""
