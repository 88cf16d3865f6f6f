"""`agent_run`, as before 1.0: this process serves an editor on its stdin and stdout."""

import asyncio
import sys

from .._program import find_program


async def agent_run() -> int:
    """Runs `crow-cli acp` on this process's stdin and stdout until the editor closes them; returns its exit status.

    Cancelling ends the agent.
    """
    process = await asyncio.create_subprocess_exec(find_program(), "acp")
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise


def main() -> None:
    sys.exit(asyncio.run(agent_run()))


if __name__ == "__main__":
    main()
