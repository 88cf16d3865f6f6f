#!/usr/bin/env bash
# Has `crow-cli run --agent` reach `crow-cli acp` through another program: `run.sh ssh` over a real OpenSSH server,
# `run.sh slurm` over a real Slurm with two nodes, both on the loopback and ended with the checks, `run.sh podman` in a
# container of its own for each run. The list of checks is at the end.
#
# A check runs in a subshell of its own; whatever it says is why it failed.
# shellcheck disable=SC2329 # functions are called by the table
set -u
cd "$PROJECT" || exit

way=$1
far=$HOME/far

# Tells the scripted model, see run.sh.
say() {
    local line
    for line in "$@"; do
        echo "$line" >&3
        read -r _ <&4
    done
}

must() {
    "$@" || {
        echo "not so: $*"
        [ -s "$HOME/said" ] && tail -n 5 "$HOME/said" | cut -c1-600
        exit 1
    }
}

crow() { "$CROW" run --agent far "$@" >"$HOME/said" 2>&1 </dev/null 3>&- 4<&-; }
heard() { grep -qF -- "$1" "$HOME/said"; }

# A port that is free now.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Waits for a condition; there is no event for the end of a process on the other side.
until_so() {
    local n
    for n in $(seq 200); do
        "$@" && return
        sleep 0.1
    done
    return 1
}

# The agents on the other side, by their command line.
far_agents() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        if [ "$(tr '\0' ' ' 2>/dev/null <"$file")" = "$CROW -d $far/.crow acp " ]; then
            basename "$(dirname "$file")"
        fi
    done
}
nothing_far() { [ -z "$(far_agents)" ]; }
something_far() { [ -n "$(far_agents)" ]; }

configure_ssh() {
    local port
    port=$(free_port)
    ssh-keygen -q -t ed25519 -N '' -f "$HOME/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$HOME/key"
    cat >"$HOME/sshd_config" <<CONFIG
Port $port
ListenAddress 127.0.0.1
HostKey $HOME/host_key
AuthorizedKeysFile $HOME/key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile $HOME/sshd.pid
SetEnv HOME=$far
CONFIG
    cat >"$HOME/ssh_config" <<CONFIG
Host far
    HostName 127.0.0.1
    Port $port
    IdentityFile $HOME/key
    IdentitiesOnly yes
    UserKnownHostsFile $HOME/known_hosts
    StrictHostKeyChecking accept-new
    LogLevel ERROR
CONFIG
    mkdir -p /run/sshd
    /usr/sbin/sshd -D -f "$HOME/sshd_config" -E "$HOME/sshd.log" 3>&- 4<&- &
    trap 'kill "$(cat "$HOME/sshd.pid")"' EXIT
    must until_so [ -s "$HOME/sshd.pid" ]
    server="[ssh, -F, '$HOME/ssh_config', -T, -e, none, -o, BatchMode=yes, far, '$CROW', -d, '$far/.crow', acp]"
    killed='during the session with code 255'
}

configure_slurm() {
    local name node
    dir=$HOME/slurm
    name=$(hostname -s)
    mkdir -p "$dir/state"
    dd if=/dev/urandom of="$dir/key" bs=128 count=1 2>/dev/null
    chmod 600 "$dir/key"
    cat >"$dir/slurm.conf" <<CONFIG
ClusterName=crow
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n1 NodeHostname=$name NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2
NodeName=n2 NodeHostname=$name NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
CONFIG
    export SLURM_CONF=$dir/slurm.conf
    trap 'kill "$(cat "$dir"/slurmd-n1.pid)" "$(cat "$dir"/slurmd-n2.pid)" "$(cat "$dir"/slurmctld.pid)"; kill "$(cat "$dir"/munged.pid)"' EXIT
    munged --force --key-file="$dir/key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
        --seed-file="$dir/seed" --log-file="$dir/munge.log" 3>&- 4<&- 2>/dev/null
    slurmctld -c -f "$SLURM_CONF" -L "$dir/slurmctld.log" 3>&- 4<&- 2>/dev/null
    for node in n1 n2; do slurmd -N "$node" -f "$SLURM_CONF" -L "$dir/slurmd-$node.log" 3>&- 4<&- 2>/dev/null; done
    must until_so nodes_are_idle
    server="[srun, -n1, -Q, --unbuffered, --kill-on-bad-exit=1, '$CROW', -d, '$far/.crow', acp]"
    killed='during the session with code 137'
}

# A container sees the program, the libraries that it needs, a shell, and the directories of the check.
configure_podman() {
    local root=$HOME/image file
    mkdir -p "$root/bin" "$root/tmp" "$root$PROJECT" "$root$far" "$root$(dirname "$CROW")"
    cp "$CROW" "$root$CROW"
    cp -L /bin/bash "$root/bin/bash"
    ln -s bash "$root/bin/sh"
    while read -r file; do
        mkdir -p "$root$(dirname "$file")"
        cp -L "$file" "$root$file"
    done < <(ldd "$CROW" /bin/bash | grep -o '/[^ ]*\.so[^ ]*' | sort -u)
    podman=(podman --runtime runc --cgroup-manager cgroupfs --storage-driver vfs --root "$HOME/containers" --runroot "$HOME/containers-run")
    # Podman does not notice the end of a container whose monitor ended with Crow.
    trap '"${podman[@]}" rm -fa >/dev/null 2>&1' EXIT
    tar -C "$root" -cf - . | "${podman[@]}" import -q - crow >/dev/null
    rm -r "$root"
    # The limits are lower than those of the checks, which a container may not raise.
    server="[$(printf '%s, ' "${podman[@]}") run, -i, --rm, --init, --network=host, --ulimit, nofile=1024:1024, --ulimit, nproc=1024:1024,
      -v, '$far:$far', -v, '$PROJECT:$PROJECT', crow, '$CROW', -d, '$far/.crow', acp]"
    killed='during the session with code 137'
}

nodes_are_idle() { [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }

a_prompt() {
    say 'text "Hello" | text " from afar" | usage 10 2'
    must crow hi
    must heard 'Hello from afar'
    must until_so nothing_far
}

a_task() {
    say 'call task {"prompt": "say hello", "agent": "far", "title": "hello"}' 'text "Hello from below"' 'text "It said so."'
    "$CROW" run -y 'give it away' >"$HOME/said" 2>&1 </dev/null 3>&- 4<&-
    must heard 'It said so.'
    must until_so nothing_far
}

# Starts a turn that does not end, and waits for its agent.
begin_turn() {
    say 'text "so far\n\nand further" | hold'
    : >"$HOME/said"
    "$CROW" run --agent far 'go on' >>"$HOME/said" 2>&1 </dev/null 3>&- 4<&- &
    crow_pid=$!
    must timeout 60 grep -qm1 'so far' <(tail -n +1 -f --pid="$crow_pid" "$HOME/said")
    must something_far
}

crow_is_killed() {
    begin_turn
    kill -KILL "$crow_pid"
    wait "$crow_pid" 2>/dev/null
    must until_so nothing_far
    [ "$way" != slurm ] || must until_so nodes_are_idle
}

the_far_agent_is_killed() {
    begin_turn
    far_agents | xargs kill -KILL
    wait "$crow_pid" && echo 'it succeeded' && exit 1
    must heard "$killed"
}

a_shell_that_greets() {
    [ "$way" = ssh ] || return 77
    echo 'echo Welcome; printf "Have a nice day: "' >"$far/.bashrc"
    say 'text "Hello"'
    must crow hi
    must heard Hello
    rm "$far/.bashrc"
}

check() {
    local name=$1 why status=0
    [[ ${name//_/ } == *"${ONLY:-}"* ]] || return 0
    why=$("$name") || status=$?
    case $status in
    0) echo "ok $way: ${name//_/ }" ;;
    77) echo "skipped $way: ${name//_/ } (it cannot)" ;;
    *) echo "FAILED $way: ${name//_/ }: $(tr '\n' ' ' <<<"$why")" ;;
    esac
    # What is left of its script is not the next one's.
    say requests
}

mkdir -p "$far"
cp -r "$HOME/.crow" "$far/.crow"
"configure_$way"
printf 'agent_servers:\n  far: { command: %s, cwd: "%s" }\n' "$server" "$PROJECT" >>"$HOME/.crow/config.yaml"
for name in a_prompt a_task crow_is_killed the_far_agent_is_killed a_shell_that_greets; do
    check "$name"
done
