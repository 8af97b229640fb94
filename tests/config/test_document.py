"""The manual page of the settings matches their declarations."""

from pathlib import Path

from firesteel.config import ALL_OPTIONS
from firesteel.config.document import render_configuration_page

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
RENEW = (
    "python -c 'from firesteel.config.document import render_configuration_page as r; "
    'print(r(), end="")\' > docs/configuration.md'
)


def test_the_committed_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == render_configuration_page(), f"run: {RENEW}"


def test_every_setting_is_on_the_page():
    page = render_configuration_page()
    for option in ALL_OPTIONS:
        assert f"| `{option.key}` |" in page
