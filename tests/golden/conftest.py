from __future__ import annotations

import pytest

OPTION = "--regenerate-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        action="store_true",
        help="write the outputs as they are now: read the diff line by line against the contract before you keep it",
    )


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption(OPTION, default=False))
