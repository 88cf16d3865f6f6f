#!/usr/bin/env node
// Starts the program of the package for this system, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

/** Returns the name of the package that has the program for this system. */
function platformPackage() {
  const name = `@crow-cli/${process.platform}-${process.arch}`;
  const musl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return musl ? `${name}-musl` : name;
}

function findProgram() {
  if (process.env.CROW_CLI_PROGRAM) return process.env.CROW_CLI_PROGRAM;
  const suffix = process.platform === "win32" ? ".exe" : "";
  const name = platformPackage();
  try {
    return require.resolve(`${name}/bin/crow-cli${suffix}`);
  } catch {
    console.error(
      `crow-cli: the package ${name} is not installed. Optional dependencies may be switched off, the lock file may ` +
        `come from another system, or there is no build for this one. Reinstall crow-cli without the lock file, or ` +
        `set CROW_CLI_PROGRAM to the path of the program.`,
    );
    process.exit(1);
  }
}

const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`crow-cli: could not start the program: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const name of signals) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
