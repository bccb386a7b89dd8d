"""What a running extender counts, read from its metrics."""

import asyncio
import re


async def scraped(port: int) -> str:
    """Return all metrics as text."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return text


def counted(text: str, name: str, **labels: str) -> float:
    """Add up the series of *name* that have *labels*."""
    total = 0.0
    for found in re.finditer(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE):
        has = dict(re.findall(r'(\w+)="([^"]*)"', found[1] or ""))
        if labels.items() <= has.items():
            total += float(found[2])
    return total
