import os
import unittest
from pathlib import Path

from function_order import Tracer, can_trace, read_functions


@unittest.skipUnless(can_trace("x86_64-unknown-linux-gnu"), "it traces programs for Linux on x86-64")
class FunctionOrderTest(unittest.TestCase):
    def test_functions_of_a_start_and_a_turn_are_found(self) -> None:
        program = Path(os.environ["CROW_CLI_PROGRAM"])
        tracer = Tracer(program, read_functions(program))
        found = tracer.run()
        phases = {}
        for address, phase in sorted(tracer.reached.items(), key=lambda item: item[1]):
            phases.setdefault(tracer.functions[address], phase)

        def phases_of(part: str) -> set[int]:
            self.assertTrue(any(part in name for name in tracer.functions.values()), f"{program} has no function {part}")
            return {phase for name, phase in phases.items() if part in name}

        self.assertEqual(phases_of("crow_cli11run_command"), {0})
        self.assertEqual(phases_of("crow_agent8run_turn8run_turn"), {1})
        self.assertEqual(phases_of("crow_cli6doctor"), set())
        self.assertTrue(found == sorted(found, key=phases.get), "functions of the turn come before some of the start")


if __name__ == "__main__":
    unittest.main()
