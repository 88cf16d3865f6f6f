#!/usr/bin/env bash
# Drives `crow-cli mcp` with the MCP inspector: `run.sh inspector`.
set -u
cd "$PROJECT" || exit

inspect() { mcp-inspector --cli "$CROW" mcp --method "$@"; }

must_hear() { # WORDS COMMAND...
    local words=$1 heard
    shift
    heard=$("$@" 2>&1)
    [[ $heard == *"$words"* ]] || {
        echo "no $words in: $heard"
        exit 1
    }
}

lists() {
    must_hear '"name": "terminal"' inspect tools/list
    must_hear '"readOnlyHint": true' inspect tools/list
}

calls() {
    echo hello >a.txt
    must_hear '1\thello' inspect tools/call --tool-name read --tool-arg file_path=a.txt
    must_hear '"isError": true' inspect tools/call --tool-name read --tool-arg file_path=missing
    must_hear 'over and out' inspect tools/call --tool-name terminal --tool-arg 'command=echo over and out'
}

over_http() {
    local line url token
    coproc SERVER { exec "$CROW" mcp --http 127.0.0.1:0; }
    read -r line <&"${SERVER[0]}"
    url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' <<<"$line")
    token=$(cat "$(sed 's/.*"token_file":"\([^"]*\)".*/\1/' <<<"$line")")
    must_hear '"name": "terminal"' mcp-inspector --cli "$url" --transport http --method tools/list \
        --header "Authorization: Bearer $token"
    kill "$SERVER_PID"
    wait "$SERVER_PID"
}

status=0
check() { # NAME FUNCTION
    [[ $1 == *"$ONLY"* ]] || return 0
    local why
    if why=$("$2" 2>&1); then
        echo "ok inspector: $1"
    else
        echo "FAILED inspector: $1: ${why//$'\n'/ }"
        status=1
    fi
}

check "tools are listed" lists
check "tools are called" calls
check "over HTTP" over_http
exit $status
