"""Asks Crow one question and prints its answer as it arrives: `ask.py QUESTION`."""

import asyncio
import sys

from crow_cli import Agent, Text


async def main(question: str) -> None:
    async with Agent("crow-cli", "acp") as agent:
        async for event in agent.prompt(question):
            if isinstance(event, Text):
                print(event.text, end="", flush=True)
    print()


asyncio.run(main(*sys.argv[1:]))
