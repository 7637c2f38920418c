"""What the library tells while it runs: the logger `halfseen`, silent unless the user listens."""

import logging

logger = logging.getLogger("halfseen")
logger.addHandler(logging.NullHandler())
