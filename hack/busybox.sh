#!/usr/bin/env bash
# Makes the image berth-demo/busybox:1 from this machine's own busybox, without
# a registry and without the docker command: it is imported through the
# engine's interface. An image that is there already is left as it is.
#
#   hack/busybox.sh [HOST]     HOST: unix:///path or tcp://host:port of the engine
#
# Without HOST it is DOCKER_HOST, else the usual socket. Prints the image's name.
set -euo pipefail

image=berth-demo/busybox
tag=1
host=${1:-${DOCKER_HOST:-unix:///var/run/docker.sock}}

say() { echo "busybox.sh: $*" >&2; }
die() { say "$*"; exit 1; }

# engine PATH [CURL OPTION]...: a request to the engine
engine() {
	local path=$1
	shift
	case $host in
	unix://*) curl -sS --fail --unix-socket "${host#unix://}" "$@" "http://engine$path" ;;
	tcp://*) curl -sS --fail "$@" "http://${host#tcp://}$path" ;;
	*) die "cannot speak to an engine at $host" ;;
	esac
}

# static FILE: does it run without libraries?
static() { ! LC_ALL=C ldd "$1" 2>/dev/null | grep -q '=>'; }

find_busybox() {
	local file
	for file in /bin/busybox /usr/bin/busybox; do
		[ -x "$file" ] && static "$file" && echo "$file" && return
	done
	return 1
}

get_busybox() {
	find_busybox && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		die "a static busybox is missing: install the package busybox-static, then call again"
	fi
	say "installing busybox-static"
	apt-get -q install -y --no-install-recommends busybox-static >&2 ||
		{ apt-get -q update && apt-get -q install -y --no-install-recommends busybox-static; } >&2
	find_busybox || die "busybox-static is installed, but there is no static /bin/busybox"
}

engine /_ping >/dev/null || die "no engine answers at $host"
if ! engine "/images/$image:$tag/json" >/dev/null 2>&1; then
	busybox=$(get_busybox)
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	mkdir -p "$root"/{bin,etc,tmp,home/container}
	chmod 1777 "$root/tmp"
	cp "$busybox" "$root/bin/busybox"
	for applet in $("$busybox" --list); do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	tar -C "$root" -c . | engine "/images/create?fromSrc=-&repo=$image&tag=$tag&changes=CMD%20%5B%22sh%22%5D" -X POST \
		-H 'Content-Type: application/x-tar' --data-binary @- >/dev/null || die "the engine did not take the image"
	engine "/images/$image:$tag/json" >/dev/null || die "the engine did not keep the image"
fi
echo "$image:$tag"
