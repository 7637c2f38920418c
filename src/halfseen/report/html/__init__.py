"""One page in HTML over all studies that were run; a browser needs no network to show it."""
