"""The agent as a web service with a dashboard: `halfseen serve`."""
