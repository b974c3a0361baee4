#!/usr/bin/env bash
# Installs, upgrades, downgrades, removes and purges the package in a Debian that has no
# systemd, and in one that seems to have it. TestPackage runs it in mount, network and
# process namespaces of its own.
#
#   hack/deb/lifecycle.sh ROOT OLD.deb NEW.deb
#
# ROOT is a directory with a Debian (hack/engines.sh root); it is not changed. OLD.deb and
# NEW.deb contain the versions 0.0.1 and 0.0.2.
set -euo pipefail

root=$1 old=$2 new=$3
step='' url=http://127.0.0.1:8070
trap 'echo "lifecycle.sh: failed in step: $step (line $LINENO)" >&2' ERR
die() { echo "lifecycle.sh: $step: $*" >&2; exit 1; }
begin() { step=$1; echo "$1"; }

space=/mnt # the namespace's own
mount -t tmpfs tmpfs "$space"
mkdir "$space"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=$root,upperdir=$space/upper,workdir=$space/work" "$space/root"
cd "$space/root"
mount -t proc proc proc
mount -t tmpfs tmpfs run
mount --rbind /dev dev
ip link set lo up
mkdir debs
cp "$old" debs/old.deb
cp "$new" debs/new.deb

inside=(env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot .)
debian() { "${inside[@]}" "$@"; }
token() { sed -n 's/^ *token: *"\?\(berth_[0-9a-f]*\)"\?.*/\1/p' etc/berth/berth.yaml | head -n 1; }
api() { curl -fsS --max-time 20 -H "Authorization: Bearer $(token)" -H 'Accept: Application/vnd.berthv1+json' -H 'Content-Type: application/json' "$@"; }
equal() { [ "$1" = "$2" ] || die "is '$1', not '$2'"; }
status() { debian dpkg-query -W -f '${db:Status-Abbrev}' berth 2>/dev/null || true; }

daemon=''
serve() {
	"${inside[@]}" berth serve --docker.host=unix:///run/no-engine --firewall.backend=none >log 2>&1 &
	daemon=$!
	until curl -fsS --max-time 5 $url/api/v1/public/ping >/dev/null 2>&1; do
		kill -0 $daemon || { cat log; die "the daemon ended"; }
		sleep 0.1
	done
}
stop() { kill -TERM $daemon && wait $daemon; }
# record prints what identifies the stored container.
record() { api $url/containers/mc | grep -o '"\(internal_id\|volume_id\|image\|power\)":"[^"]*"' | sort | tr '\n' ' '; }

begin 'install without systemd'
debian dpkg -i debs/old.deb >log 2>&1 || { cat log; die 'dpkg failed'; }
equal "$(debian berth --version)" 'berth version 0.0.1'
equal "$(stat -c '%a %U' etc/berth/berth.yaml)" '600 root'
equal "$(stat -c %a etc/berth)" 700
[ -n "$(token)" ] || die 'there is no token'
debian berth config check >/dev/null
equal "$(debian dpkg --verify berth)" ''
[ -L etc/systemd/system/multi-user.target.wants/berth.service ] || die 'the unit is not enabled'
grep -q '^ExecStart=/usr/bin/berth serve$' usr/lib/systemd/system/berth.service
grep -q '^ExecStart=/usr/bin/berth-wings ' usr/lib/systemd/system/berth-wings.service
[ ! -e etc/systemd/system/multi-user.target.wants/berth-wings.service ] || die 'the bridge is enabled'
equal "$(debian berth-wings --version)" 'berth-wings version 0.0.1'
touch etc/berth/wings.token
debian bash -n /usr/share/bash-completion/completions/berth
for page in man1/berth.1 man1/berth-serve.1; do gzip -t "usr/share/man/$page.gz"; done
first=$(token)

begin 'a container is stored'
serve
volume=$(api -X POST $url/volumes | sed 's/.*"volume_id":"\([^"]*\)".*/\1/')
api $url/containers -d '{"internal_id":"mc","image":"none:1","volume_id":"'"$volume"'","startup_command":"true"}' >/dev/null
stored=$(record)
case $stored in *'"internal_id":"mc"'*"$volume"*) ;; *) die "stored: $stored" ;; esac

begin 'upgrade'
echo '# changed by the operator' >>etc/berth/berth.yaml
config=$(sha256sum etc/berth/berth.yaml)
debian dpkg -i debs/new.deb >log2 2>&1 || { cat log2; die 'dpkg failed'; }
equal "$(record)" "$stored" # the old daemon runs on until it is restarted
stop
equal "$(debian berth --version)" 'berth version 0.0.2'
equal "$(sha256sum etc/berth/berth.yaml)" "$config"
serve
equal "$(record)" "$stored"

begin 'downgrade'
debian dpkg -i debs/old.deb >log2 2>&1 || { cat log2; die 'dpkg failed'; }
stop
serve
equal "$(debian berth --version)" 'berth version 0.0.1'
equal "$(record)" "$stored"
stop

begin 'remove keeps the configuration and the data'
debian dpkg -r berth >log2 2>&1 || { cat log2; die 'dpkg failed'; }
[ ! -e usr/bin/berth ] || die 'the binary is left'
equal "$(sha256sum etc/berth/berth.yaml)" "$config"
[ -d "var/lib/berth/volumes/$volume" ] || die 'the volume is gone'

begin 'install again'
debian dpkg -i debs/new.deb >log2 2>&1
equal "$(token)" "$first"
serve
equal "$(record)" "$stored"
stop

begin 'purge keeps volumes'
debian dpkg -P berth >log2 2>&1 || { cat log2; die 'dpkg failed'; }
grep -q 'is kept, because it has volumes' log2
[ -d "var/lib/berth/volumes/$volume" ] || die 'the volume is gone'
[ ! -e etc/berth ] || die 'the configuration is left'
equal "$(status)" ''

begin 'with systemd'
mkdir -p run/systemd/system
for program in systemctl deb-systemd-invoke; do
	printf '#!/bin/sh\necho "%s $*" >>/calls\n' $program >usr/local/bin/$program
	chmod 755 usr/local/bin/$program
done
# calls prints what the scripts called since the last time; deb-systemd-helper reloads too.
calls() { grep -v '^systemctl daemon-reload$' calls | sort -u | tr '\n' ';' && rm calls; }
debian dpkg -i debs/old.deb >log2 2>&1 || { cat log2; die 'dpkg failed'; }
equal "$(calls)" 'deb-systemd-invoke start berth.service;systemctl --system daemon-reload;'
[ "$(token)" != "$first" ] || die 'the token is not fresh'
debian dpkg -i debs/new.deb >log2 2>&1
equal "$(calls)" 'deb-systemd-invoke try-restart berth.service berth-wings.service;systemctl --system daemon-reload;'
debian dpkg -r berth >log2 2>&1
equal "$(calls)" 'deb-systemd-invoke stop berth-wings.service berth.service;systemctl --system daemon-reload;'

begin 'purge without volumes leaves nothing'
rm -r "var/lib/berth/volumes/$volume"
debian dpkg -P berth >log2 2>&1 || { cat log2; die 'dpkg failed'; }
rm -r calls usr/local/bin/{systemctl,deb-systemd-invoke} debs log log2
equal "$(find etc usr var/lib -name '*berth*' -not -path 'var/lib/dpkg/*')" ''
begin 'done'
