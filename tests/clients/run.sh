#!/usr/bin/env bash
# Real clients drive the real binary; see README.md.
#
#   run.sh [acpx|python|python-http|typescript|typescript-http|rust|mcp-client|inspector|mcp-servers]...
#                                        checks with all clients or some
#   run.sh codex|codex-zed|fast-agent|gemini|kimi|opencode|qwen|vibe...
#                                        checks with agents that crow-cli drives
#   run.sh ssh|slurm|podman...          checks that reach an agent through OpenSSH, Slurm or a container, as root
#   run.sh --install                     gets the clients
#   run.sh --install-agents              gets the agents
#
# CROW is the binary to check, PYTHON the interpreter that --install uses. ONLY=words runs the checks with these words
# in their names, WIRE=1 shows every line of the protocol on stderr. AGENTS is the folder that the agents are in.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
modules=$here/node_modules
venv=$here/.venv
agents=${AGENTS:-$here/agents}
model=$root/target/debug/examples/scripted-model
# A client that hangs is a failed check; nothing here takes more than some seconds.
patience=180

install() {
    cargo build --quiet --locked --manifest-path "$here/rust/Cargo.toml" --target-dir "$here/rust/target"
    if command -v npm >/dev/null; then
        npm install --prefix "$here" --no-audit --no-fund --no-package-lock --loglevel=error
    else
        echo "skipped: acpx and typescript need npm"
    fi
    local python
    # A name on the PATH may be a stand-in for a version that is not there: it has to run.
    for python in "${PYTHON:-python3.13}" python3; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$python" -m venv --clear "$venv"
            "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
            # What the fetch server uses gets its own half from npm when it is first asked, which takes longer than a check.
            PATH="$modules/.bin:$PATH" "$venv/bin/python" -c 'from readabilipy.simple_json import have_node; have_node()'
            return
        fi
    done
    echo "skipped: python needs Python 3.11 or newer (PYTHON=path)"
}

install_agents() {
    mkdir -p "$agents"
    [ "$agents" -ef "$here/agents" ] || cp "$here/agents/package.json" "$agents"
    if command -v npm >/dev/null; then
        npm install --prefix "$agents" --no-audit --no-fund --no-package-lock --loglevel=error
    else
        echo "skipped: codex, gemini, opencode and qwen need npm"
    fi
    local python
    for python in "${PYTHON:-python3.13}" python3.12 python3; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
            # Each has its own environment: they do not agree on the versions of what they use.
            local requirements name
            for requirements in "$here"/agents/*.txt; do
                name=$(basename "$requirements" .txt)
                "$python" -m venv --clear "$agents/$name"
                "$agents/$name/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
            done
            return
        fi
    done
    echo "skipped: kimi, vibe and fast-agent need Python 3.12 or newer (PYTHON=path)"
}

# A world of its own: a home with a configuration, a project, and a model on the loopback.
begin() {
    trap end EXIT
    world=$(mktemp -d "${TMPDIR:-/tmp}/crow-clients.XXXXXX")
    mkdir -p "$world/home" "$world/project"
    mkdir -m 700 "$world/home/.crow"
    mkfifo "$world/to-model" "$world/from-model"
    "$model" <"$world/to-model" >"$world/from-model" 2>"$world/model-says" &
    model_pid=$!
    exec 3>"$world/to-model" 4<"$world/from-model"
    read -r base_url <&4
    cat >"$world/home/.crow/config.yaml" <<CONFIG
providers:
  scripted: { base_url: "$base_url", api_key: none }
models:
  scripted: { provider: scripted }
  other: { provider: scripted }
max_retries_per_step: 0
CONFIG
}

# The processes of this world that are left: all of them have its home.
left_over() {
    local environment pid
    for environment in /proc/[0-9]*/environ; do
        pid=${environment#/proc/} pid=${pid%/environ}
        if tr '\0' '\n' 2>/dev/null <"$environment" | grep -qxF "HOME=$world/home"; then
            echo "$pid"
        fi
    done
}

# Ends the world. A process that has not ended by itself is a failed check.
end() {
    [ -n "${world:-}" ] || return 0
    exec 3>&- 4<&-
    wait "$model_pid" || echo "FAILED $client: the model's view: $(tr '\n' ' ' <"$world/model-says")"
    local pid
    for pid in $(left_over); do
        if ! timeout 5 tail --pid="$pid" -f /dev/null; then
            echo "FAILED $client: left running: $(tr '\0' ' ' <"/proc/$pid/cmdline" || true)"
            kill -KILL "$pid" || true
        fi
    done
    rm -rf "$world"
    world=
}

# Runs one client's checks in a new world; its lines go to stdout.
check() {
    client=$1
    shift
    begin
    local status=0
    # A home and nothing else of ours: no keys, no configuration, no proxy.
    env -i HOME="$world/home" PATH="$modules/.bin:$PATH" LANG=C.UTF-8 TMPDIR="$world" \
        CROW="$crow" PROJECT="$world/project" CLIENTS="$here" AGENTS="$agents" \
        ONLY="${ONLY:-}" ${WIRE:+WIRE=1} \
        timeout "$patience" "$@" || status=$?
    case $status in
    0 | 1) ;; # Its lines have said it.
    124) echo "FAILED $client: it hung" ;;
    *) echo "FAILED $client: it ended with $status" ;;
    esac
    end
}

main() {
    if [ "${1:-}" = --install ]; then
        install
        exit
    fi
    if [ "${1:-}" = --install-agents ]; then
        install_agents
        exit
    fi
    crow=${CROW:-}
    for built in "$root/target/release/crow-cli" "$root/target/debug/crow-cli"; do
        [ -n "$crow" ] || [ ! -x "$built" ] || crow=$built
    done
    if [ ! -x "$crow" ]; then
        echo "skipped: no crow-cli to check (cargo build -p crow-cli, or CROW=path)"
        exit
    fi
    if [ ! -x "$model" ]; then
        echo "skipped: no scripted model (cargo build -p crow-testkit --example scripted-model)"
        exit
    fi
    crow=$(realpath "$crow")
    [ $# -gt 0 ] || set -- acpx python python-http typescript typescript-http rust mcp-client inspector mcp-servers
    local n_ok=0 n_failed=0 line
    while read -r line; do
        echo "$line"
        case $line in
        "ok "*) n_ok=$((n_ok + 1)) ;;
        "FAILED "*) n_failed=$((n_failed + 1)) ;;
        esac
    done < <(for name in "$@"; do run "$name"; done)
    echo "$n_ok ok, $n_failed failed"
    [ "$n_failed" = 0 ]
}

run() {
    local node=$modules/.bin/node install="tests/clients/run.sh --install"
    case $1 in
    acpx)
        if [ ! -x "$modules/.bin/acpx" ] || [ ! -x "$node" ]; then
            echo "skipped: acpx is not installed ($install)"
        else check acpx bash "$here/acpx.sh"; fi
        ;;
    python)
        if [ ! -x "$venv/bin/python" ]; then
            echo "skipped: the Python SDK is not installed ($install)"
        else check python "$venv/bin/python" "$here/client.py"; fi
        ;;
    python-http)
        if [ ! -x "$venv/bin/python" ]; then
            echo "skipped: the Python SDK is not installed ($install)"
        else check python-http env HTTP=1 "$venv/bin/python" "$here/client.py"; fi
        ;;
    typescript)
        if [ ! -d "$modules/@agentclientprotocol/sdk" ] || [ ! -x "$node" ]; then
            echo "skipped: the TypeScript SDK is not installed ($install)"
        else check typescript "$node" --experimental-strip-types "$here/client.ts"; fi
        ;;
    typescript-http)
        if [ ! -d "$modules/@agentclientprotocol/sdk" ] || [ ! -x "$node" ]; then
            echo "skipped: the TypeScript SDK is not installed ($install)"
        else check typescript-http env HTTP=1 "$node" --experimental-strip-types "$here/client.ts"; fi
        ;;
    rust)
        if [ ! -x "$here/rust/target/debug/crow-clients" ]; then
            echo "skipped: the Rust SDK is not installed ($install)"
        else check rust "$here/rust/target/debug/crow-clients"; fi
        ;;
    mcp-client)
        if [ ! -x "$venv/bin/python" ]; then
            echo "skipped: the Python MCP SDK is not installed ($install)"
        else check mcp-client "$venv/bin/python" "$here/mcp_client.py"; fi
        ;;
    inspector)
        if [ ! -x "$modules/.bin/mcp-inspector" ] || [ ! -x "$node" ]; then
            echo "skipped: the MCP inspector is not installed ($install)"
        else check inspector bash "$here/inspector.sh"; fi
        ;;
    mcp-servers)
        if [ ! -d "$modules/@modelcontextprotocol/server-everything" ] || ! command -v node >/dev/null; then
            echo "skipped: the MCP servers are not installed ($install)"
        else check mcp-servers bash "$here/mcp_servers.sh"; fi
        ;;
    ssh)
        if [ ! -x /usr/sbin/sshd ] || [ "$(id -u)" != 0 ]; then
            echo "skipped: ssh needs OpenSSH's server, and root"
        else check ssh bash "$here/reach.sh" ssh; fi
        ;;
    slurm)
        if ! command -v slurmctld slurmd munged srun >/dev/null || [ "$(id -u)" != 0 ]; then
            echo "skipped: slurm needs slurmctld, slurmd, munge and srun, and root"
        else check slurm bash "$here/reach.sh" slurm; fi
        ;;
    podman)
        if ! command -v podman runc catatonit >/dev/null || [ "$(id -u)" != 0 ]; then
            echo "skipped: podman needs podman, runc and catatonit, and root"
        else check podman bash "$here/reach.sh" podman; fi
        ;;
    kimi) check_agent kimi "$agents/kimi/bin/kimi" ;;
    vibe) check_agent vibe "$agents/vibe/bin/vibe-acp" ;;
    fast-agent) check_agent fast-agent "$agents/fast-agent/bin/fast-agent-acp" ;;
    opencode | qwen) check_agent "$1" "$agents/node_modules/.bin/$1" ;;
    gemini) check_agent gemini "$agents/node_modules/.bin/gemini" ;;
    codex) check_agent codex "$agents/node_modules/@agentclientprotocol/codex-acp/dist/index.js" ;;
    codex-zed) check_agent codex-zed "$agents/node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp" ;;
    *) echo "FAILED $1: there is no such client" ;;
    esac
}

check_agent() {
    if [ ! -x "$2" ]; then
        echo "skipped: $1 is not installed (tests/clients/run.sh --install-agents)"
    else check "$1" bash "$here/agents.sh" "$1"; fi
}

main "$@"
