import shutil

import pytest
from hypothesis import settings

from tests.oracle_program import Oracle, built

# Machines are shared: how long an example takes says nothing about it.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    return built()
