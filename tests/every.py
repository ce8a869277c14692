"""Whether everything is tried, which takes many minutes (``make faults``), or a sample (``make test``)."""

import os

EVERY = os.environ.get("GATEPOST_FAULTS") == "all"
