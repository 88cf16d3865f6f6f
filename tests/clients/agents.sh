#!/usr/bin/env bash
# Has `crow-cli run --agent` drive an agent that others wrote: `run.sh kimi`, `opencode` or `qwen`. The table of checks
# is at the end.
#
# A check runs in a subshell of its own; whatever it says is why it failed.
# shellcheck disable=SC2016,SC2329 # scripts of the model are no shell; functions are called by the table
set -u
cd "$PROJECT" || exit

agent=$1
modules=$CLIENTS/node_modules
base_url=$(sed -n 's/.*base_url: "\([^"]*\)".*/\1/p' "$HOME/.crow/config.yaml")

# Tells the scripted model, see run.sh; $answer is what it answers.
say() {
    local line
    for line in "$@"; do
        echo "$line" >&3
        read -r answer <&4
    done
}

must() {
    "$@" || {
        echo "not so: $*"
        [ -s "$HOME/said" ] && tail -n 5 "$HOME/said" | cut -c1-600
        exit 1
    }
}

crow() { "$CROW" run --agent "$agent" "$@" >"$HOME/said" 2>&1 </dev/null; }
heard() { grep -qF -- "$1" "$HOME/said"; }
# The model was told this since the check began.
told() {
    [ -n "${answer_kept:-}" ] || {
        say requests
        answer_kept=$answer
    }
    [[ $answer_kept == *"$1"* ]]
}

# The agent as crow-cli is told of it, and its model as it is told itself; `call` has it write made.txt by a command.
configure_kimi() {
    call='call Shell {"command": "echo hi > made.txt"}'
    mkdir -p "$HOME/.kimi"
    # It compacts at once when less than 50,000 tokens are free.
    cat >"$HOME/.kimi/config.toml" <<CONFIG
default_model = "scripted"
[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 200000
[providers.scripted]
type = "openai_legacy"
base_url = "$base_url"
api_key = "none"
CONFIG
    server="{ command: '$AGENTS/kimi/bin/kimi', args: [acp] }"
}

configure_opencode() {
    call='call bash {"command": "echo hi > made.txt", "description": "writes"}'
    mkdir -p "$HOME/.config/opencode"
    cat >"$HOME/.config/opencode/opencode.json" <<CONFIG
{
  "model": "scripted/scripted", "autoupdate": false, "share": "disabled", "enabled_providers": ["scripted"],
  "permission": {"bash": "ask", "edit": "ask"},
  "provider": {"scripted": {
    "npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": {"baseURL": "$base_url", "apiKey": "none"},
    "models": {"scripted": {"name": "scripted", "limit": {"context": 32000, "output": 4000}}}
  }}
}
CONFIG
    # It has the model name a session, beside everything else.
    say 'aside text "A title"'
    server="{ command: '$AGENTS/node_modules/.bin/opencode', args: [acp], env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1', OPENCODE_DISABLE_DEFAULT_PLUGINS: '1' } }"
}

configure_qwen() {
    call='call run_shell_command {"command": "echo hi > made.txt", "is_background": false, "description": "writes"}'
    mkdir -p "$HOME/.qwen"
    cat >"$HOME/.qwen/settings.json" <<'CONFIG'
{
  "security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true},
  "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
}
CONFIG
    server="{ command: '$AGENTS/node_modules/.bin/qwen', args: [--acp], env: { OPENAI_API_KEY: none, OPENAI_BASE_URL: '$base_url', OPENAI_MODEL: scripted } }"
}

# Both lines of codex-acp read the configuration of Codex, which speaks the responses API only. In its other modes the
# newer one has a model decide about commands.
configure_codex() {
    call='call exec_command {"cmd": "echo hi > made.txt", "sandbox_permissions": "require_escalated", "justification": "may it?"}'
    mkdir -p "$HOME/.codex"
    # It sends fields and tools that only its own provider knows, and now and then a request beside the turn.
    say 'accept all' 'aside text "beside"'
    cat >"$HOME/.codex/config.toml" <<CONFIG
model = "scripted"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.scripted]
name = "scripted"
base_url = "$base_url"
wire_api = "responses"
[analytics]
enabled = false
CONFIG
    server="{ command: '$modules/.bin/node', args: ['$AGENTS/node_modules/@agentclientprotocol/codex-acp/dist/index.js'], env: { INITIAL_AGENT_MODE: read-only } }"
}

configure_codex-zed() {
    configure_codex
    server="{ command: '$AGENTS/node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp' }"
}

configure_gemini() {
    call='call run_shell_command {"command": "echo hi > made.txt", "description": "writes"}'
    mkdir -p "$HOME/.gemini"
    cat >"$HOME/.gemini/settings.json" <<'CONFIG'
{
  "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
}
CONFIG
    say 'aside text "{}"'
    # It does not find the first session of a project again.
    loses_sessions=1
    coproc GEMINI { exec python3 "$CLIENTS/gemini_api.py" "$base_url" 3>&- 4<&-; }
    local gemini_url
    read -r gemini_url <&"${GEMINI[0]}"
    server="{ command: '$AGENTS/node_modules/.bin/gemini', args: [--acp, --model, gemini-2.5-flash], env: { GEMINI_API_KEY: none, GOOGLE_GEMINI_BASE_URL: '$gemini_url' } }"
}

configure_vibe() {
    call='call bash {"command": "echo hi > made.txt"}'
    mkdir -p "$HOME/.vibe"
    cat >"$HOME/.vibe/config.toml" <<CONFIG
active_model = "scripted"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false
[[providers]]
name = "scripted"
api_base = "$base_url"
api_key_env_var = "SCRIPTED_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "scripted"
provider = "scripted"
alias = "scripted"
CONFIG
    say 'aside text "A title"'
    server="{ command: '$AGENTS/vibe/bin/vibe-acp', env: { SCRIPTED_KEY: none } }"
}

configure_fast-agent() {
    call='call bash {"command": "echo hi > made.txt"}'
    # Without a terminal of its client it runs commands itself, and asks about none.
    asks_nothing=1
    cat >"$PROJECT/fastagent.config.yaml" <<CONFIG
default_model: generic.scripted
generic: { api_key: none, base_url: "$base_url" }
logger: { type: none }
CONFIG
    server="{ command: '$AGENTS/fast-agent/bin/fast-agent-acp', args: [--shell, --model, generic.scripted] }"
}

a_prompt() {
    say 'thought "hm" | text "Hello" | text " there" | usage 10 2'
    must crow hi
    must heard 'Hello there'
}

a_call_allowed() {
    say "$call" 'text "done"'
    must crow -y 'make a file'
    must [ -e made.txt ]
    must heard done
    rm made.txt
}

# Some end the turn when a call is refused, some ask the model again.
nobody_to_ask() {
    [ -z "${asks_nothing:-}" ] || return 77
    say "$call" 'text "not done"'
    crow 'make a file'
    must [ ! -e made.txt ]
    must heard 'no terminal to ask on'
}

lines_of_JSON() {
    say 'text "Hello"'
    must crow -j hi
    must heard '"type":"result"'
    must heard end_turn
}

cancel() {
    say 'text "so far\n\nand further" | hold'
    : >"$HOME/said"
    "$CROW" run --agent "$agent" 'go on' >>"$HOME/said" 2>&1 </dev/null 3>&- 4<&- &
    local status=0
    crow_pid=$!
    trap 'kill "$crow_pid" 2>/dev/null' EXIT
    must timeout 60 grep -qm1 'so far' <(tail -n +1 -f --pid="$crow_pid" "$HOME/said")
    kill -INT "$crow_pid"
    wait "$crow_pid" || status=$?
    must [ "$status" = 130 ]
}

another_process_goes_on() {
    [ -z "${loses_sessions:-}" ] || return 77
    say 'text "first words"' 'text "second words"'
    must crow -j 'remember me'
    local session
    session=$(sed -n 's/.*"type":"session".*"id":"\([^"]*\)".*/\1/p;s/.*"session":"\([^"]*\)".*/\1/p' "$HOME/said" | head -n 1)
    must [ -n "$session" ]
    must crow -s "$session" again
    must heard 'second words'
    must told 'remember me'
}

# Crow's own model gives it a task; what it asks is asked where Crow was asked.
task() { "$CROW" run "$@" >"$HOME/said" 2>&1 </dev/null; }

a_task() {
    say "call task {\"prompt\": \"say hello\", \"agent\": \"$agent\", \"title\": \"hello\"}" 'text "Hello from below"' 'text "It said so."'
    must task -y 'give it away'
    must heard 'It said so.'
    must told 'Hello from below'
}

a_task_that_asks() {
    say "call task {\"prompt\": \"make a file\", \"agent\": \"$agent\"}" "$call" 'text "made"' 'text "It is there."'
    must task -y 'give it away'
    must [ -e made.txt ]
    rm made.txt
}

a_task_goes_on() {
    [ -z "${loses_sessions:-}" ] || return 77
    say "call task {\"prompt\": \"remember me\", \"agent\": \"$agent\"}" 'text "I do"' 'text "Given."'
    must task -j -y 'give it away'
    local session task
    session=$(sed -n 's/.*"type":"session".*"id":"\([^"]*\)".*/\1/p;s/.*"session":"\([^"]*\)".*/\1/p' "$HOME/said" | head -n 1)
    task=$("$CROW" inspect --tree -s "$session" -j | sed -n "s/.*\"id\":\"\([^\"]*\)\".*/\1/p" | tail -n 1)
    must [ -n "$task" ]
    say "call task_send {\"task\": \"$task\", \"prompt\": \"and now\"}" 'text "still here"' 'text "It goes on."'
    must task -y -s "$session" 'say more'
    must told 'remember me'
    must told 'still here'
}

check() {
    local name=$1 why status=0
    [[ ${name//_/ } == *"${ONLY:-}"* ]] || return 0
    why=$("$name") || status=$?
    case $status in
    0) echo "ok $agent: ${name//_/ }" ;;
    77) echo "skipped $agent: ${name//_/ } (it cannot)" ;;
    *) echo "FAILED $agent: ${name//_/ }: $(tr '\n' ' ' <<<"$why")" ;;
    esac
    # What is left of its script is not the next one's.
    say requests
}

"configure_$agent"
printf 'agent_servers:\n  %s: %s\n' "$agent" "$server" >>"$HOME/.crow/config.yaml"
for name in a_prompt a_call_allowed nobody_to_ask lines_of_JSON cancel another_process_goes_on \
    a_task a_task_that_asks a_task_goes_on; do
    check "$name"
done
