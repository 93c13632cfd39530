"""The process that evaluates input from outside, for the core and for features: `python -m service.sandbox <MB>`."""

import sys

from service.core.policy.sandbox_process import serve
from service.features.whatif.replays import JOBS

if __name__ == "__main__":
    serve(int(sys.argv[1]), JOBS)
