"""How the frozen representations in `halfseen/data` were made, and how to make more."""
