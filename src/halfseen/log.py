"""The logger `halfseen`, silent unless the user adds a handler."""

import logging

logger = logging.getLogger("halfseen")
logger.addHandler(logging.NullHandler())
