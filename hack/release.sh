#!/usr/bin/env bash
# Builds what a release consists of, in OUT: static binaries, Debian packages, an SBOM
# (CycloneDX) of each binary, and SHA256SUMS.
#
#   hack/release.sh release OUT      for ARCHS
#   hack/release.sh deb OUT          only the Debian package, for this machine
#
# It needs no root, and dpkg-deb for the packages. Equal commits give equal files: paths,
# times, owners and the machine leave no trace.
# Environment: VERSION (that of the program), DEB_VERSION (of the packages; default: made from
# VERSION and the time of the commit), ARCHS (default: amd64 arm64), GO (the go command),
# DEB_COMPRESSION (of the packages; default: xz. A test that does not look at it takes none).
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "release.sh: $*" >&2; exit 1; }

what=${1:-} out=${2:-}
[ -n "$out" ] || die "usage: hack/release.sh release|deb OUT"
: "${VERSION:?name the version in VERSION: make release does}"
go=${GO:-$(hack/go.sh)} archs=${ARCHS:-amd64 arm64}

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C CGO_ENABLED=0 GOOS=linux GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-trimpath
umask 022
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# deb_version prints a version that sorts as releases do. 0.1.0+gabc, before the release 0.1.0,
# becomes 0.1.0~20260102030405.gabc, and 0.1.0-5-gabc, after it, 0.1.0+5.gabc.
deb_version() {
	local version=${VERSION//-dirty/.dirty}
	case $version in
	*+g*) echo "${version%%+*}~$(date -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S).${version#*+}" ;;
	*-*-g*) version=${version/-/+}; echo "${version/-/.}" ;;
	*) echo "$version" ;;
	esac
}

# binary ARCH NAME prints the path of a static binary: berth or berth-wings.
binary() {
	local file=$work/$2_$1
	[ -e "$file" ] || GOARCH=$1 "$go" build -buildvcs=auto -ldflags "-s -w -buildid= -X main.version=$VERSION" -o "$file" "./cmd/$2"
	echo "$file"
}

# keeper ARCH prints the path of the first process of containers.
keeper() {
	local file=$work/keeper_$1
	[ -e "$file" ] || GOARCH=$1 "$go" build -ldflags '-s -w -buildid=' -o "$file" ./cmd/keeper
	echo "$file"
}

# manual writes man pages and completions once, for all packages.
manual() { [ -d "$work/share" ] || "$go" run ./hack/manual "$VERSION" "$work/share"; }

# notices BINARY… prints the licences of everything that is linked into them.
notices() {
	local path version dir
	cat hack/deb/copyright
	printf '\nGo, the standard library\n\n' && sed 's/^/ /' "$("$go" env GOROOT)/LICENSE"
	"$go" version -m "$@" | awk '$1 == "dep" { print $2 }' | LC_ALL=C sort -u | xargs "$go" list -m -f '{{.Path}} {{.Version}} {{.Dir}}' | while read -r path version dir; do
		for file in "$dir"/LICENSE* "$dir"/LICENCE* "$dir"/COPYING* "$dir"/NOTICE*; do
			[ -f "$file" ] || continue
			printf '\n%s %s (%s)\n\n' "$path" "$version" "$(basename "$file")" && sed 's/^/ /' "$file"
		done
	done
	for file in api/ui/assets/vendor/*.LICENSE; do
		printf '\n%s (a library of the page, from npm)\n\n' "$(basename "$file" .LICENSE)" && sed 's/^/ /' "$file"
	done
}

# package ARCH builds the Debian package.
package() {
	local arch=$1 root=$work/root_$1 version=${DEB_VERSION:-$(deb_version)} file
	file=$(binary "$arch" berth)
	manual
	command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: build packages on Debian, or install dpkg"
	install -D -m 755 "$file" "$root/usr/bin/berth"
	install -m 755 "$(keeper "$arch")" "$root/usr/bin/berth-keeper"
	install -m 755 "$(binary "$arch" berth-wings)" "$root/usr/bin/berth-wings"
	install -d "$root/usr/share/doc/berth" "$root/usr/lib/systemd/system" "$root/DEBIAN"
	for unit in berth berth-wings; do
		sed 's|/usr/local/bin/berth|/usr/bin/berth|' "hack/$unit.service" >"$root/usr/lib/systemd/system/$unit.service"
	done
	cp -r "$work/share/." "$root/usr/share/"
	mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions" # Debian's place
	find "$root/usr/share/man" -type f -exec gzip -9n {} +
	notices "$file" "$(binary "$arch" berth-wings)" >"$root/usr/share/doc/berth/copyright"
	gzip -9nc .github/CHANGELOG.md >"$root/usr/share/doc/berth/NEWS.gz"
	cp README.md hack/docs/*.md "$root/usr/share/doc/berth/"
	printf 'berth (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- berth maintainers <berth@localhost>  %s\n' \
		"$version" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$root/usr/share/doc/berth/changelog.gz"
	install -D -m 644 hack/deb/lintian-overrides "$root/usr/share/lintian/overrides/berth"
	for script in postinst prerm postrm; do install -m 755 "hack/deb/$script" "$root/DEBIAN/$script"; done
	(cd "$root" && find usr -type f -printf '%P\0' | sort -z | sed -z 's|^|usr/|' | xargs -0 md5sum >DEBIAN/md5sums)
	sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" hack/deb/control >"$root/DEBIAN/control"
	chmod -R u=rwX,go=rX "$root"
	dpkg-deb --root-owner-group --threads-max=1 "-Z${DEB_COMPRESSION:-xz}" --build "$root" "$out/berth_${version}_$arch.deb" >/dev/null
	echo "$out/berth_${version}_$arch.deb"
}

case $what in
deb)
	package "$("$go" env GOHOSTARCH)"
	;;
release)
	rm -f "$out"/berth_* "$out"/berth-{keeper,wings}_* "$out/SHA256SUMS"
	for arch in $archs; do
		package "$arch"
		for program in berth berth-wings; do
			name=${program}_${VERSION}_linux_$arch
			install -m 755 "$(binary "$arch" "$program")" "$out/$name"
			(unset GOOS && "$go" run ./hack/sbom "$VERSION" "$out/$name") >"$out/$name.cdx.json"
			echo "$out/$name"
		done
		install -m 755 "$(keeper "$arch")" "$out/berth-keeper_${VERSION}_linux_$arch"
	done
	(cd "$out" && sha256sum berth_* berth-{keeper,wings}_* >SHA256SUMS)
	;;
*) die "usage: hack/release.sh release|deb OUT" ;;
esac
