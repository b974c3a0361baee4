#!/usr/bin/env bash
# Finds a Docker engine for the tests, or installs and starts one.
#
#   hack/docker.sh         ensure a running engine; print its address
#   hack/docker.sh tools [PROGRAM:PACKAGE…]
#                          ensure the tools that tests need, and these
#
# It is idempotent, and several callers may run it at once. Messages go to stderr;
# stdout has only the engine's address:
#   export DOCKER_HOST=$(hack/docker.sh)
# Environment: DOCKER_HOST (an engine that answers there is used),
# BERTH_DOCKER_WAIT (seconds to wait for a new engine, default 60).
set -euo pipefail

socket=/var/run/docker.sock
wait_seconds=${BERTH_DOCKER_WAIT:-60}
run_dir=${TMPDIR:-/tmp}
log=/var/log/berth-dockerd.log
# One lock for the whole machine, whatever TMPDIR is.
lock=/tmp/berth-docker.lock

say() { echo "docker.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# answers HOST succeeds if an engine answers a ping at that address.
answers() {
	case $1 in
	unix://*) curl -fsS --max-time 5 --unix-socket "${1#unix://}" http://engine/_ping ;;
	tcp://*) curl -fsS --max-time 5 "http://${1#tcp://}/_ping" ;;
	*) return 1 ;;
	esac >/dev/null 2>&1
}

engine() {
	local host
	for host in ${DOCKER_HOST:-} "unix://$socket"; do
		if answers "$host"; then
			echo "$host"
			return 0
		fi
	done
	return 1
}

# Pairs of a program, or of a file with its path, and its Debian package. A package counts as
# installed if its program is in PATH, or its file is there. The daemon and its engine need the
# first list, tests need both.
programs='curl:curl iptables:iptables pgrep:procps flock:util-linux'
test_programs='busybox:busybox-static docker-registry:docker-registry ip:iproute2 nsenter:util-linux unzip:unzip zip:zip bzip2:bzip2 xz:xz-utils htpasswd:apache2-utils
mkfs.ext4:e2fsprogs strace:strace bash-static:bash-static redis-check-rdb:redis-tools tini:tini node:nodejs /usr/sbin/setcap:libcap2-bin
sftp:openssh-client rclone:rclone lftp:lftp /usr/lib/python3/dist-packages/paramiko/__init__.py:python3-paramiko /usr/lib/python3/dist-packages/asyncssh/__init__.py:python3-asyncssh'

# missing PAIR… prints the packages of the first list and of these pairs that are not installed.
missing() {
	local pair
	for pair in $programs "$@"; do
		command -v "${pair%%:*}" >/dev/null || [ -e "${pair%%:*}" ] || echo "${pair#*:}"
	done | sort -u
}

# static_busybox reports whether busybox is the static one; a file of its package shows it.
static_busybox() { [ -e /usr/share/doc/busybox-static ] || ! command -v ldd >/dev/null || ! ldd "$(command -v busybox)" >/dev/null 2>&1; }

install_missing() {
	local wanted
	wanted=$(missing "$@")
	[ -z "${wanted//[[:space:]]/}" ] && return 0
	[ "$(id -u)" = 0 ] || die "not root: install these yourself, then call again:" $wanted
	command -v apt-get >/dev/null || die "no apt-get here: install these with your package manager, then call again:" $wanted
	say "installing" $wanted
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update >&2 || say "apt-get update failed; trying the lists that are there"
	# This script starts the engine itself, so that it is the same on every machine.
	apt-get -q install -y --no-install-recommends $wanted >&2 || die "apt-get could not install:" $wanted
}

# stale NAME FILE removes a pid file whose process is not NAME.
stale() {
	[ -e "$2" ] || return 0
	grep -qsx "$1" "/proc/$(cat "$2")/comm" || rm -f "$2"
}

start_engine() {
	[ -w "$(dirname "$log")" ] || log=$run_dir/berth-dockerd.log
	# The pid file of a killed engine may contain the pid of another process by now.
	stale dockerd /var/run/docker.pid
	stale containerd /var/run/docker/containerd/containerd.pid
	if ! pgrep -x dockerd >/dev/null || [ ! -e /var/run/docker.pid ]; then
		say "starting dockerd, log in $log"
		# Descriptor 9 is the lock: the engine must not inherit it.
		setsid nohup dockerd --host "unix://$socket" >>"$log" 2>&1 </dev/null 9>&- &
	fi
	local deadline=$((SECONDS + wait_seconds))
	until answers "unix://$socket"; do
		if ! pgrep -x dockerd >/dev/null && [ "$SECONDS" -gt $((deadline - wait_seconds + 3)) ]; then
			tail -n 20 "$log" >&2
			die "dockerd exited; the end of its log ($log) is above"
		fi
		if [ "$SECONDS" -ge "$deadline" ]; then
			tail -n 20 "$log" >&2
			die "dockerd did not answer within $wait_seconds s; the end of its log ($log) is above"
		fi
		sleep 0.2
	done
	echo "unix://$socket"
}

# alone takes the lock: two callers must not install or start at once.
alone() {
	command -v flock >/dev/null || return 0
	exec 9>>"$lock" || die "cannot write $lock"
	flock -w 600 9 || die "another docker.sh has held $lock for 10 minutes"
}

main() {
	case ${1:-engine} in
	tools)
		shift
		command -v busybox >/dev/null && ! static_busybox && set -- /dev/null/no-static-busybox:busybox-static "$@"
		# shellcheck disable=SC2086 # a list of words
		set -- $test_programs "$@"
		[ -z "$(missing "$@")" ] && return 0
		[ "$(id -u)" = 0 ] && alone
		install_missing "$@"
		;;
	engine)
		engine && return 0
		[ "$(id -u)" = 0 ] || die "no engine answers at ${DOCKER_HOST:-unix://$socket}, and only root can start one: start it (sudo systemctl start docker, or sudo $0) and make sure that you are in the group docker"
		alone
		engine && return 0 # another caller started it
		install_missing dockerd:docker.io
		start_engine
		;;
	*) die "usage: hack/docker.sh [tools [PROGRAM:PACKAGE…]]" ;;
	esac
}

main "$@"
