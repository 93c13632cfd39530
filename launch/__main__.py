"""`make up`: runs Sayso on this machine until Ctrl-C."""

from launch.programs import SETUP, programs_for
from launch.stacks import run
from service.core.logs import start
from service.core.settings import Settings
from service.core.settings.secrets import SECRETS


def main(settings: Settings) -> int:
    """Run all programs that the settings need."""
    return run(settings, programs_for(settings), SETUP)


if __name__ == "__main__":
    raise SystemExit(start(main, sees=SECRETS, several=True))
