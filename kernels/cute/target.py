"""The architecture that is being compiled for: one process each, chosen by CUTE_DSL_ARCH before the DSL
loads."""

import os

ARCHITECTURE = os.environ.get("CUTE_DSL_ARCH", "")
BLACKWELL = ARCHITECTURE.startswith("sm_10")
