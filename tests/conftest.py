"""Settings of all tests, made before anything imports torch or numpy."""

import os

from hypothesis import settings

from dsv4chat.runtime.threads import decide_threads

# Several workers share the cores; one thread each is faster than all of them on every core.
decide_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else None)

# A busy machine is no fault of an example.
settings.register_profile("dsv4chat", deadline=None)
settings.load_profile("dsv4chat")
