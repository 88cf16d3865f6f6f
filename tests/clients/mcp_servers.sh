#!/usr/bin/env bash
# Has crow-cli drive MCP servers that others wrote: `run.sh mcp-servers`. The table of checks is at the end.
#
# A check runs in a subshell of its own; whatever it says is why it failed.
# shellcheck disable=SC2016,SC2329 # scripts of the model are no shell; functions are called by the table
set -u
cd "$PROJECT" || exit

everything=$CLIENTS/node_modules/@modelcontextprotocol/server-everything/dist/index.js
filesystem=$CLIENTS/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js
python=$CLIENTS/.venv/bin
config=$HOME/.crow/config.yaml
plain_config=$(cat "$config")

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

# The servers of the check, as lines below `mcpServers`.
servers() { printf '%s\nmcpServers:\n%s\n' "$plain_config" "$1" >"$config"; }
crow() { "$CROW" run -y "$@" >"$HOME/said" 2>&1 </dev/null; }
heard() { grep -qF -- "$1" "$HOME/said"; }
# The model was told this since the check began.
told() {
    [ -n "${answer_kept:-}" ] || {
        say requests
        answer_kept=$answer
    }
    [[ $answer_kept == *"$1"* ]]
}
not_told() { ! told "$1"; }

# An editor that speaks line by line: its messages go to $to, what it hears is kept in $HOME/said.
# Its capabilities are the argument, none by default.
open_editor() {
    local capabilities=${1:-}
    coproc EDITOR { "$CROW" acp 2>/dev/null; }
    to=${EDITOR[1]} from=${EDITOR[0]}
    : >"$HOME/said"
    tell '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{'"$capabilities"'}}}'
    hear '"id":1,'
    tell '{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"'"$PROJECT"'","mcpServers":[]}}'
    hear '"sessionId"'
    session=$(sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' "$HOME/said" | head -n 1)
}
tell() { echo "$1" >&"$to"; }
request_id() {
    sed -n 's/.*"id":\("[^"]*"\|[0-9]*\),"method".*/\1/p;s/.*"method".*"id":\("[^"]*"\|[0-9]*\)}$/\1/p' <<<"$1" | head -n 1
}
# Reads until a line has this, says yes to every question on the way, and answers forms with what is offered first, or
# with a name.
hear() {
    local line id choice content
    while IFS= read -r -t 60 line <&"$from"; do
        echo "$line" >>"$HOME/said"
        if [[ $line == *'"session/request_permission"'* ]]; then
            id=$(request_id "$line")
            tell '{"jsonrpc":"2.0","id":'"$id"',"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}}'
        fi
        if [[ $line == *'"elicitation/create"'* ]]; then
            id=$(request_id "$line")
            choice=$(grep -o '"const":"[^"]*"' <<<"$line" | head -n 1 | cut -d '"' -f 4)
            content='"other":"Ada"'
            [ -z "$choice" ] || content='"answer":"'"$choice"'"'
            tell '{"jsonrpc":"2.0","id":'"$id"',"result":{"action":"accept","content":{'"$content"'}}}'
        fi
        [[ $line == *"$1"* ]] && return
    done
    return 1
}
prompt() {
    tell '{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"'"$session"'","prompt":[{"type":"text","text":"'"$1"'"}]}}'
}
# A server that takes long to start comes with a later turn.
until_there() {
    local turn
    for ((turn = 0; turn < 2000; turn++)); do
        say 'text "not yet"'
        : >"$HOME/said"
        prompt wait
        hear end_turn || return 1
        say requests
        [[ $answer == *"\"$1\""* ]] && return
    done
    return 1
}
close_editor() {
    exec {to}>&-
    wait "$EDITOR_PID" 2>/dev/null || true
}

over_stdio() {
    servers "  everything: { command: node, args: ['$everything'] }"
    say 'call echo {"message": "over stdio"}' 'call get-sum {"a": 2, "b": 40}' 'text "done"'
    must crow hi
    must told 'Echo: over stdio'
    must told '42'
}

images() {
    servers "  everything: { command: node, args: ['$everything'] }"
    say 'call get-tiny-image {}' 'text "seen"'
    must crow hi
    must told 'data:image/png;base64,'
}

roots() {
    servers "  everything: { command: node, args: ['$everything'] }"
    say 'call get-roots-list {}' 'text "done"'
    must crow hi
    must told "file://$PROJECT"
    # Nobody can be asked.
    must not_told 'trigger-elicitation-request'
}

elicitation() {
    servers "  everything: { command: node, args: ['$everything'] }"
    say 'call trigger-elicitation-request {}' \
        'call trigger-url-elicitation {"url": "https://example.org/log-in?id=1"}' 'text "done"'
    open_editor '"elicitation":{"form":{}}'
    prompt go
    must hear 'end_turn'
    close_editor
    must heard 'The MCP server everything asks: '
    must heard 'https://example.org/log-in?id=1'
    must told 'Name: Ada'
    must told 'Favorite Integer: 42'
    must told 'User completed the URL elicitation'
}

sampling() {
    servers "  everything: { command: node, args: ['$everything'] }"
    say 'call trigger-sampling-request {"prompt": "which bird?", "maxTokens": 20}' 'text "a crow"' 'text "done"'
    open_editor
    prompt go
    must hear 'end_turn'
    close_editor
    must heard 'everything: ask the model'
    must told 'You are a helpful test server.'
    must told 'a crow'
}

disabled() {
    servers "  everything: { command: node, args: ['$everything'], disabled_tools: [get-env, get-sun] }"
    say 'text "done"'
    must crow hi
    must not_told '"get-env"'
    must told '"get-sum"'
}

progress() {
    servers "  everything: { command: node, args: ['$everything'] }"
    say 'call trigger-long-running-operation {"duration": 1, "steps": 2}' 'text "done"'
    open_editor
    prompt go
    must hear '1 of 2'
    must hear 'end_turn'
    close_editor
}

prompts() {
    servers "  every: { command: node, args: ['$everything'] }"
    say 'text "sunny"' 'text "simple"'
    open_editor
    must hear '"every:args-prompt"'
    prompt '/every:args-prompt Paris state=Texas'
    must hear 'end_turn'
    prompt '/every:args-prompt'
    must hear '/every:args-prompt needs city'
    prompt '/every:simple-prompt'
    must hear 'end_turn'
    close_editor
    must told "What's weather in Paris, Texas?"
    must told 'This is a simple prompt without arguments.'
}

resources() {
    servers "  every: { command: node, args: ['$everything'] }"
    say 'call list_mcp_resources {}' \
        'call read_mcp_resource {"server": "every", "uri": "demo://resource/dynamic/text/1"}' 'text "done"'
    must crow hi
    must told 'demo://resource/dynamic/text/{resourceId}'
    must told 'Resource 1: This is a plaintext resource'
}

# Starts the server on a free port and waits for its word.
listen() {
    local kind=$1 word=$2 port
    for _ in 1 2 3; do
        port=$((20000 + RANDOM % 20000))
        PORT=$port node "$everything" "$kind" 2>"$HOME/listening" >&2 &
        server=$!
        while kill -0 "$server" 2>/dev/null; do
            if grep -q "$word" "$HOME/listening"; then
                address=http://127.0.0.1:$port
                return
            fi
            read -r -t 0.05 <> <(:) || true
        done
    done
    echo "the server does not listen"
    exit 1
}

over_http() {
    listen streamableHttp 'listening on port'
    servers "  everything: { url: '$address/mcp' }"
    say 'call echo {"message": "over http"}' 'text "done"'
    crow hi
    kill "$server"
    must told 'Echo: over http'
}

# Waits for the server of `listen`, started again at the same address.
listen_again() {
    : >"$HOME/listening"
    PORT=${address##*:} node "$everything" "$1" 2>"$HOME/listening" >&2 &
    server=$!
    until grep -q "$2" "$HOME/listening"; do
        kill -0 "$server" || exit
        read -r -t 0.05 <> <(:) || true
    done
}

a_server_that_ends_and_returns() {
    listen streamableHttp 'listening on port'
    servers "  everything: { url: '$address/mcp' }"
    open_editor
    must until_there echo
    kill "$server"
    wait "$server" 2>/dev/null
    say 'call echo {"message": "nobody"}' 'text "failed"'
    : >"$HOME/said"
    prompt go
    must hear 'end_turn'
    listen_again streamableHttp 'listening on port'
    say 'call echo {"message": "here again"}' 'text "done"'
    : >"$HOME/said"
    prompt go
    must hear 'end_turn'
    close_editor
    kill "$server"
    must told 'Echo: here again'
    must not_told 'Echo: nobody'
}

over_the_older_http() {
    listen sse 'running on port'
    servers "  everything: { transport: sse, url: '$address/sse' }"
    say 'call echo {"message": "over sse"}' 'text "done"'
    crow hi
    kill "$server"
    must told 'Echo: over sse'
}

files() {
    echo 'in a file' >"$PROJECT/a.txt"
    servers "  files: { command: node, args: ['$filesystem', '$PROJECT'] }"
    say 'call read_text_file {"path": "'"$PROJECT"'/a.txt"}' 'call list_directory {"path": "/"}' 'text "done"'
    must crow hi
    must told 'in a file'
    must told 'Access denied'
}

git_log() {
    [ -x "$python/mcp-server-git" ] || return 77
    git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'the first of all'
    servers "  git: { command: '$python/mcp-server-git', args: [--repository, '$PROJECT'] }"
    open_editor
    must until_there git_log
    say 'call git_log {"repo_path": "'"$PROJECT"'", "max_count": 1}' 'text "done"'
    prompt go
    must hear 'end_turn'
    close_editor
    must told 'the first of all'
}

fetch() {
    [ -x "$python/mcp-server-fetch" ] || return 77
    servers "  fetch: { command: '$python/mcp-server-fetch', args: [--ignore-robots-txt, --allow-private-ips] }"
    echo '<html><body><h1>A page</h1></body></html>' >"$PROJECT/page.html"
    mkfifo "$HOME/pages"
    "$python/python" -u -m http.server 0 --bind 127.0.0.1 >"$HOME/pages" 2>/dev/null &
    local pages=$! port
    read -r port <"$HOME/pages"
    port=${port#*port } port=${port%% *}
    open_editor
    must until_there fetch
    say 'call fetch {"url": "http://127.0.0.1:'"$port"'/page.html"}' 'text "done"'
    prompt go
    must hear 'end_turn'
    close_editor
    kill "$pages"
    must told 'A page'
}

check() {
    local name=$1 why status=0
    [[ ${name//_/ } == *"${ONLY:-}"* ]] || return 0
    why=$("$name") || status=$?
    case $status in
    0) echo "ok mcp-servers: ${name//_/ }" ;;
    77) echo "skipped mcp: ${name//_/ } (not installed)" ;;
    *) echo "FAILED mcp-servers: ${name//_/ }: $(tr '\n' ' ' <<<"$why")" ;;
    esac
    # What is left of its script is not the next one's.
    say requests
}

for name in over_stdio images roots elicitation sampling disabled progress prompts resources over_http \
    a_server_that_ends_and_returns over_the_older_http files git_log fetch; do
    check "$name"
done
