#!/bin/bash
# expects: modlist.html @CBA_A3
# expects: checksum.ok checked
set -eo pipefail
cd /mnt/server
function clean() { rm -rf /mnt/server/.tmp; }
trap clean EXIT
mkdir .tmp
base64 -d > .tmp/list.gz <<'B64'
H4sIAAAAAAAAA3NwdnKMdzTmAgDT3NfoCAAAAA==
B64
gunzip -c .tmp/list.gz > modlist.html
select_mod() { local -r mod=$1; [[ $mod == @* ]] && echo "${mod,,}" || return 1; }
lower=$(select_mod "$(head -n1 modlist.html)")
test "$lower" = "@cba_a3"
echo "abc" | sha256sum | awk '{print $1}' | grep -q '^edeaaff3f1774ad2' && echo checked > checksum.ok
