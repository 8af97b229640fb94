"""What all tests share."""

from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("firesteel", deadline=None)
settings.load_profile("firesteel")
