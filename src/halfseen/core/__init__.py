"""The mathematics: each piece usable and tested by itself."""
