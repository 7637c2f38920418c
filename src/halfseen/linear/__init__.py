"""What linear policies share: ridge regression, covariances, eigenvectors, lifts, history."""
