"""Other libraries on the same rounds, in an environment of their own."""
