"""For people with a table or a log: tools over what the policies compute."""
