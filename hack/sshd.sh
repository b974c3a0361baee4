#!/usr/bin/env bash
# Extracts Debian's OpenSSH server for the benchmark of SFTP, and prints its directory. It
# installs nothing: the package would start a server on port 22.
#
# It is idempotent. Its result is in .cache, which `make clean` removes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=$here/../.cache/sshd

if [ ! -e "$target/done" ]; then
	rm -rf "$target"
	mkdir -p "$target"
	cd "$target"
	apt-get download openssh-server libwrap0 openssh-sftp-server >&2
	for package in ./*.deb; do
		dpkg -x "$package" .
	done
	touch done
fi
cd "$target" && pwd
