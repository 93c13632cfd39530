"""A site with a mail channel and a push channel, over fakes of their providers."""

from pathlib import Path

from service.core.settings import Settings
from tests.fakes.smtp import MailServer
from tests.service.edge.web.sites import POLICY


def settings_with_channels(store_url: str, home: Path, mail: MailServer) -> Settings:
    """Return settings whose channels file has both kinds."""
    (home / "policy.yaml").write_text(POLICY)
    (home / "channels.yaml").write_text(
        "channels:\n"
        f"  mail: {{kind: mail, host: localhost, port: {mail.port}, security: none, sender: desk@sayso.example}}\n"
        "  push: {kind: push, contact: 'mailto:ops@example.com'}\n"
    )
    return Settings(
        home=home,
        redis_url=store_url,
        policy=home / "policy.yaml",
        channels=home / "channels.yaml",
        aap_allow_loopback=True,
    )
