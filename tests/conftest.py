import shutil

import pytest

from tests.oracle_program import Oracle, built


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    return built()
