#!/usr/bin/env bash
# Runs the suites that need a Docker engine on each engine that berth supports:
# those of Debian 12 (20.10), 13 (26.1) and sid (28.5).
#
#   hack/engines.sh                  run the suites on every engine of ENGINES
#   hack/engines.sh root SUITE       create the directory of an engine; print its path. The suite
#                                    servers is Debian 12 with the game servers of ./hack/e2e
#   hack/engines.sh with SUITE CMD…  run CMD beside an engine of that suite
#
# debootstrap installs each engine into a directory below BERTH_ENGINE_CACHE
# (default /var/cache/berth-engines; remove a directory to install its engine
# again). The engine runs in its own mount, network and process namespaces, with
# the directory's /usr and /etc mounted over the machine's, so tests use the same
# paths for it. All its processes end with the command, also when this script is
# killed.
#
# CMD gets DOCKER_HOST, the address of the running engine, and BERTH_ENGINE_ROOT,
# the directory for isolated engines (enginetest.StartIsolated).
# Environment: ENGINES (default "bookworm trixie sid"), BERTH_ENGINE_CACHE,
# BERTH_ENGINE_MIRROR (default: that of debootstrap), BERTH_DOCKER_WAIT (seconds
# until an engine answers, default 60).
set -euo pipefail
cd "$(dirname "$0")/.."

self=$PWD/hack/engines.sh
cache=${BERTH_ENGINE_CACHE:-/var/cache/berth-engines}
mirror=${BERTH_ENGINE_MIRROR:-} # empty: debootstrap uses its default
packages=docker.io,containerd,runc,iptables,iproute2,ca-certificates
servers=minetest-server,openttd,openttd-opengfx,redis-server,openjdk-17-jdk-headless,libjline2-java
# The test suites that run on each engine.
suites='./hack/test/enginetest ./runtime/docker ./controller/console ./hack/e2e'

say() { echo "engines.sh: $*" >&2; }
die() { say "$*"; exit 1; }

need_debootstrap() {
	command -v debootstrap >/dev/null && return
	command -v apt-get >/dev/null || die "install debootstrap, then call again"
	say "installing debootstrap"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q update >&2 || say "apt-get update failed; trying the lists that are there"
	apt-get -q install -y --no-install-recommends debootstrap debian-archive-keyring >&2 || die "apt-get could not install debootstrap"
}

# root SUITE creates the directory of an engine. It has its name only when complete.
root() {
	local suite=$1 dir=$cache/$1 log=$cache/$1.log
	[ "$suite" != servers ] || { suite=bookworm packages=$servers; }
	[ "$(id -u)" = 0 ] || die "isolated engines need root"
	mkdir -p "$cache"
	(
		flock 8
		[ -d "$dir" ] && exit 0
		flock 9
		need_debootstrap
		flock -u 9
		rm -rf --one-file-system "$dir.part"
		say "installing Debian $suite into $dir${mirror:+ from $mirror}; this takes two minutes"
		if ! debootstrap --variant=minbase --include=$packages "$suite" "$dir.part" ${mirror:+"$mirror"} >"$log" 2>&1; then
			tail -n 20 "$log" >&2
			die "debootstrap could not install $suite; the end of its log ($log) is above; set BERTH_ENGINE_MIRROR to use another mirror"
		fi
		rm -rf "$dir.part/var/cache/apt" "$dir.part/var/lib/apt/lists"
		mv "$dir.part" "$dir"
	) 8>>"$dir.lock" 9>>"$cache/lock" || exit 1
	echo "$dir"
}

# with SUITE CMD… runs CMD beside an engine.
with() {
	local root dir code=0 stopped=''
	root=$(root "$1")
	shift
	dir=$(mktemp -d /var/tmp/bsXXXXXX)
	unshare --mount --propagation private --net --pid --fork --kill-child --mount-proc \
		"$self" inside "$root" "$dir" "$@" &
	local child=$!
	# When the first process of a pid namespace ends, the kernel ends all others.
	trap 'stopped=1; kill -KILL $child 2>/dev/null || true' INT TERM HUP
	wait $child || code=$?
	trap - INT TERM HUP
	wait $child 2>/dev/null || true
	rm -rf --one-file-system "$dir"
	[ -z "$stopped" ] || die "stopped by a signal"
	return $code
}

# inside ROOT DIR CMD… is the first process of the namespaces.
inside() {
	local root=$1 dir=$2 code=0
	shift 2
	mount --make-rshared /
	mount -t tmpfs tmpfs /run # hides sockets, locks and network namespaces of the machine
	ip link set lo up
	unshare --mount --propagation slave "$self" engine "$root" \
		--host "unix://$dir/s" --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
		>"$dir/log" 2>&1 </dev/null &
	local engine=$! deadline=$((SECONDS + ${BERTH_DOCKER_WAIT:-60}))
	until curl -fsS --max-time 5 --unix-socket "$dir/s" http://engine/_ping >/dev/null 2>&1; do
		if ! kill -0 $engine 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
			tail -n 20 "$dir/log" >&2
			die "the engine of $root does not answer; the end of its log is above"
		fi
		sleep 0.2
	done
	say "engine of $root: $(curl -fsS --unix-socket "$dir/s" http://engine/version |
		sed 's/.*"Version":"\([^"]*\)","ApiVersion":"\([^"]*\)".*/Docker \1, API \2/')"
	DOCKER_HOST=unix://$dir/s BERTH_ENGINE_ROOT=$root "$@" &
	wait $! || code=$?
	kill -TERM $engine 2>/dev/null && wait $engine || true
	return $code
}

# engine ROOT ARGS… executes dockerd with the directory's programs, in its own
# mount namespace.
engine() {
	local root=$1
	shift
	mount --rbind "$root/etc" /etc
	mount --rbind "$root/usr" /usr
	exec /usr/sbin/dockerd "$@"
}

run_suites() {
	local suite failed=''
	hack/docker.sh tools
	"$(hack/go.sh)" mod download # the engines' network namespaces reach no proxy
	for suite in ${ENGINES:-bookworm trixie sid}; do
		root "$suite" >/dev/null &
	done
	wait
	for suite in ${ENGINES:-bookworm trixie sid}; do
		say "suites on the engine of $suite"
		with "$suite" "$(hack/go.sh)" test -count=1 -timeout 20m $suites || failed="$failed $suite"
	done
	[ -z "$failed" ] || die "failed on the engine of:$failed"
}

case ${1:-run} in
run) run_suites ;;
root | with | inside | engine) "$@" ;;
*) die "usage: hack/engines.sh [root SUITE | with SUITE CMD…]" ;;
esac
