"""The factor model of half-seen rows: mean, loadings, noise and rank."""
