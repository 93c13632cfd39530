"""Stand-in for a worker with a busy work horse, which has its own process group and ignores SIGTERM."""

import os
import signal

if __name__ == "__main__":
    if os.fork() == 0:
        os.setpgrp()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()
