"""What a program that runs beside the tests says of itself."""

from pathlib import Path
from subprocess import Popen

import aiohttp

from tests.controlplane.client import until

TIMEOUT = aiohttp.ClientTimeout(total=5)
LAST_CHARACTERS = 2000


async def asked(port: int, path: str) -> tuple[int, str]:
    """Ask a probe; nothing where nobody answers."""
    try:
        async with aiohttp.ClientSession(timeout=TIMEOUT, trust_env=False) as session:
            response = await session.get(f"http://127.0.0.1:{port}/{path}")
            return response.status, await response.text()
    except (aiohttp.ClientError, TimeoutError):
        return 0, ""


async def until_ready(process: Popen[bytes], port: int, log: Path) -> None:
    """Wait until a program is ready; one that does not become so, or ends, is an error with what it said last."""
    said = ""

    async def is_ready() -> bool:
        nonlocal said
        if process.poll() is not None:
            raise RuntimeError(f"it has ended: {end_of(log)}")
        status, said = await asked(port, "readyz")
        return status == 200

    try:
        await until(is_ready, "a program to be ready")
    except TimeoutError as error:
        raise TimeoutError(f"{error}; it answers {said or 'nothing'}: {end_of(log)}") from None


def end_of(log: Path) -> str:
    """Return the end of a program's log, with its name."""
    return f"{log.stem}: {log.read_text(errors='replace')[-LAST_CHARACTERS:]}"
