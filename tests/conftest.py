"""Settings for every test."""

from hypothesis import settings

# A loaded machine is slow, and slowness is no falsifying example.
settings.register_profile("gatepost", deadline=None)
settings.load_profile("gatepost")
