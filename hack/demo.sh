#!/usr/bin/env bash
# Plays the main job against a running daemon: a volume, a port, a container
# with an install script and a start pattern, its console, a command, a stop.
# Each step shows what is sent and what came back.
#
# It reads the configuration that `make run` uses: BERTH_CONFIG, else
# /etc/berth/berth.yaml, and the BERTH_ variables over it.
#   KEEP=1   leave the container, the port and the volume there
set -euo pipefail
cd "$(dirname "$0")/.."
berth=bin/berth

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
	bold='' dim='' green='' red='' plain=''
fi

number=0
step() {
	number=$((number + 1))
	echo
	echo "$bold$number. $*$plain"
}
die() {
	echo "${red}demo: $*$plain" >&2
	exit 1
}

# sent METHOD PATH [BODY]: sends it, shows it and the answer, and keeps the answer in $reply
sent() {
	echo "$dim   > $1 $2$plain"
	if [ $# -gt 2 ]; then
		printf '%s\n' "$3" | sed "s/^/$dim   >   /; s/\$/$plain/"
		reply=$(printf '%s' "$3" | api -X "$1" -H 'Content-Type: application/json' --data-binary @- "$url$2") || refused
	else
		reply=$(api -X "$1" "$url$2") || refused
	fi
	echo "   < $reply"
}
refused() { die "the daemon refused that: ${reply:-no answer}"; }

# api: curl with the token, which never stands in an argument or a file
api() { curl -K <("$berth" config curl) "$@"; }

# value KEY: a text or number of $reply
value() { printf '%s' "$reply" | sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }

# indent: everything that a program says, as it comes
indent() { sed -u 's/^/   | /'; }

has() { command -v "$1" >/dev/null || die "$1 is missing: install it, then call again"; }

find_daemon() {
	has curl
	[ -x "$berth" ] || die "there is no $berth yet: start the daemon with make run"
	local status
	if ! status=$("$berth" ps -o json 2>&1); then
		die "${status#berth: }"
	fi
	url=$(printf '%s' "$status" | sed -n 's/^ *"url": "\(.*\)",*$/\1/p')
}

# free_port: one that nothing on this host listens on
free_port() {
	local port
	for _ in $(seq 50); do
		port=$((20000 + RANDOM % 10000))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" && return; }
	done
	die "found no free port between 20000 and 29999"
}

clean() {
	[ -n "${logs:-}" ] && kill "$logs" 2>/dev/null && wait "$logs" 2>/dev/null
	[ -n "${KEEP:-}" ] && return
	[ -n "${volume:-}" ] && { api -X DELETE "$url/containers/$id?volume=true" || api -X DELETE "$url/volumes/$volume"; } >/dev/null 2>&1
	[ -n "${port:-}" ] && api -X DELETE "$url/network/ports/127.0.0.1/$port" -o /dev/null 2>/dev/null
	return 0
}
trap clean EXIT

find_daemon
id=demo-$(date +%H%M%S)-$$
echo "The daemon answers at $url."
echo "Its image is made from this machine's busybox: $(hack/busybox.sh "$("$berth" config show docker.host)")"

step "A volume: what the container keeps"
sent POST /volumes
volume=$(value volume_id)

step "A port for the pool: a container may bind only what is in it"
port=$(free_port)
sent POST /network/ports "{\"ip\": \"127.0.0.1\", \"port\": $port, \"protocol\": \"tcp\"}"

step "A container: created, then installed in the background"
sent POST /containers '{
  "internal_id": "'"$id"'",
  "image": "berth-demo/busybox:1",
  "volume_id": "'"$volume"'",
  "install_script": "echo unpacking; sleep 1; echo motd=welcome > server.properties; echo unpacked",
  "startup_command": "cat server.properties; sleep 1; echo \"Done (1.0s)! Listening on '"$port"'\"; while read line; do [ \"$line\" = stop ] && exit; echo \"console: $line\"; done",
  "start_pattern": "Done \\(.*\\)!",
  "ports": [{"ip": "127.0.0.1", "port": '"$port"', "protocol": "tcp"}],
  "limits": {"memory": 67108864, "cpu": 0.5},
  "stop": {"command": "stop", "timeout": "10s"}
}'

step "It is ready when its install script has ended with exit code 0"
"$berth" wait "$id" ready --timeout 2m | indent
sent GET "/containers/$id/install-logs"

step "Start: the request is stored before the answer"
"$berth" logs "$id" -f -n 0 > >(indent) 2>&1 &
logs=$!
sent POST "/containers/$id/start"
echo "   its console and its states, as they come:"
"$berth" wait "$id" running --timeout 2m >/dev/null

step "A command for its console"
sent POST "/containers/$id/command" '{"command": "say hello from the panel"}'
for _ in $(seq 50); do
	api "$url/containers/$id/logs?tail=5" | grep -q 'console: say hello' && break
	sleep 0.1
done

step "What the panel sees"
"$berth" ps | grep -e CONTAINER -e "$id" | indent

step "Stop: its stop command, and by force after 10 s"
sent POST "/containers/$id/stop"
"$berth" wait "$id" exit --timeout 1m >/dev/null
sleep 0.3
kill "$logs" 2>/dev/null || true
wait "$logs" 2>/dev/null || true
logs=''

step "Everything that happened, from the stored transitions"
"$berth" events -n 50 | grep " $id " | indent

if [ -n "${KEEP:-}" ]; then
	step "Kept, as KEEP is set. Remove it with"
	echo "   $berth delete $id --volume && $berth wait $id deleted && $berth ports delete 127.0.0.1 $port"
else
	step "Clean up"
	sent DELETE "/containers/$id?volume=true"
	"$berth" wait "$id" deleted --timeout 1m | indent
	sent DELETE "/network/ports/127.0.0.1/$port"
	volume='' port=''
fi
echo
echo "${green}The demo is done.$plain"
