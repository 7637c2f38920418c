"""The front door: tables, ids, and rewards by id."""
