"""What is offered and what it pays."""
