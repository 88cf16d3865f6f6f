#!/usr/bin/env bash
# Drives crow-cli with acpx: `run.sh acpx`. The table of checks is at the end.
#
# A check runs in a subshell of its own; whatever it says is why it failed.
# shellcheck disable=SC2016,SC2329 # scripts of the model are no shell; functions are called by the table
set -u
cd "$PROJECT" || exit

# Tells the scripted model, see run.sh; $answer is what it answers.
say() {
    local line
    for line in "$@"; do
        echo "$line" >&3
        read -r answer <&4
    done
}

# Runs acpx; $wire is what it and the agent said to each other.
wire=$HOME/wire
crow() {
    acpx --agent "$CROW acp" --format json --json-strict "$@" >"$wire"
    local status=$?
    [ -z "${WIRE:-}" ] || cat "$wire" >&5
    return "$status"
}

must() {
    "$@" || {
        echo "not so: $*"
        exit 1
    }
}

heard() { grep -qF -- "$1" "$wire"; }
never_heard() { ! heard "$1"; }
# The model was told this since the check began; it ends the check.
told() {
    say requests
    [[ $answer == *"$1"* ]]
}
asked() { [[ $answer == *"$1"* ]]; }
fails_with() {
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" = "$wanted" ]
}

a_prompt() {
    say 'text "Hello"'
    must crow exec hi
    must heard '"text":"Hello"'
    must heard '"stopReason":"end_turn"'
}

allowed() {
    say 'call write {"file_path": "allowed.txt", "content": "yes\n"}' 'text "done"'
    must crow --approve-all exec write
    must heard '"optionId":"allow_once"'
    must grep -qx yes allowed.txt
}

denied() {
    say 'call write {"file_path": "denied.txt", "content": "no\n"}' 'text "pity"'
    must fails_with 5 crow --deny-all exec write
    must [ ! -e denied.txt ]
    must heard '"status":"failed"'
    must told 'the user rejected it'
}

files() {
    echo old >file.txt
    say 'call read {"file_path": "file.txt"}' \
        'call edit {"file_path": "file.txt", "old_string": "old", "new_string": "new"}' 'text "done"'
    must crow --approve-all exec edit
    must heard '"method":"fs/read_text_file"'
    must heard '"method":"fs/write_text_file"'
    must heard '"type":"diff"'
    must grep -qx new file.txt
}

terminals() {
    say 'call terminal {"command": "echo $((6 * 7)); exit 3"}' 'text "done"'
    must crow --approve-all exec run
    must heard '"method":"terminal/create"'
    must heard '"type":"terminal"'
    must heard '"method":"terminal/release"'
    must told '42\nexit code 3'
}

neither() {
    say 'call write {"file_path": "own.txt", "content": "own\n"}' 'call terminal {"command": "cat own.txt; pwd"}' \
        'text "done"'
    must crow --no-fs --no-terminal --approve-all exec both
    must never_heard '"method":"fs/'
    must never_heard '"method":"terminal/'
    must told "own\\n$PROJECT"
}

cancelled() {
    say 'text "part" | hold'
    must crow sessions new
    mkfifo lines
    acpx --agent "$CROW acp" --format json --json-strict prompt long >lines 3>&- 4>&- &
    local prompting=$! line last=
    while read -r line; do
        last=$line
        case $line in *'"text":"part"'*) must crow cancel ;; esac
    done <lines
    wait "$prompting"
    case $last in *'"stopReason":"cancelled"'*) ;; *) echo "$last" && exit 1 ;; esac
    must crow sessions close
}

# Each of these commands starts an agent of its own, but for those that a session's owner does.
told_session() {
    say 'text "In a session."'
    must crow sessions new
    must crow prompt remember
    session=$(grep -o '"sessionId":"[^"]*"' "$wire" | head -n 1 | cut -d '"' -f 4)
    must crow sessions history
    must heard 'In a session.'
    # It ends the agent; what was said is in its store.
    must crow sessions close
    say requests
}

listed() {
    told_session
    must crow sessions list
    must heard "\"sessionId\":\"$session\""
    must heard '"title":"remember"'
    must crow sessions list --filter-cwd /nowhere
    must heard '"sessions":[]'
}

resumed() {
    told_session
    say 'text "I know."'
    must crow sessions new --resume-session "$session"
    must crow prompt 'what was it?'
    must heard "\"sessionId\":\"$session\""
    must told '"content":"remember"'
    must crow sessions close
}

closed() {
    told_session
    must fails_with 4 crow prompt hello
}

mode_set() {
    say 'call write {"file_path": "planned.txt", "content": "no\n"}' 'text "pity"'
    must crow sessions new
    must crow set-mode plan
    must crow --approve-all prompt write
    must never_heard '"method":"session/request_permission"'
    must [ ! -e planned.txt ]
    must crow sessions close
}

option_set() {
    say 'text "Hello"'
    must crow sessions new
    must crow set model other
    must crow set thought_level high
    must crow prompt hi
    must crow sessions close
    say requests
    must asked '"model":"other"'
    must asked '"reasoning_effort":"high"'
}

mcp_server() {
    cat >mcp.json <<JSON
{"mcpServers": [{"name": "echo", "command": "$(command -v node)", "args": ["$CLIENTS/echo-mcp.mjs"]}]}
JSON
    say 'call shout {"text": "loud"}' 'text "done"'
    must crow --mcp-config mcp.json --approve-all exec shout
    must told LOUD
}

status=0
check() { # NAME FUNCTION
    [[ $1 == *"$ONLY"* ]] || return 0
    say requests
    local why
    if why=$("$2" 2>&1); then
        echo "ok acpx: $1"
    else
        echo "FAILED acpx: $1: ${why//$'\n'/ }"
        status=1
    fi
}

exec 5>&2
check "a prompt" a_prompt
check "permission allowed" allowed
check "permission denied, and the model knows" denied
check "files go through the client" files
check "a command runs in the client's terminal" terminals
check "neither files nor terminals" neither
check "cancel" cancelled
check "history, and list in another process" listed
check "resume in another process" resumed
check "close" closed
check "mode" mode_set
check "options" option_set
check "an MCP server of the client" mcp_server
exit $status
