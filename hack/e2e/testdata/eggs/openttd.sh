#!/bin/bash
# expects: openttd.cfg server_name = berth
# expects: baseset/opengfx.txt graphics
cd /mnt/server
get() { curl -sS -L "$1" -o "$2" || return 1; }
retry() {
    local n=0
    until "$@"; do
        n=$((n+1))
        [ $n -ge 3 ] && return 1
    done
}
retry get https://cdn.example/opengfx-all.zip /tmp/opengfx.zip
mkdir -p baseset && unzip -qo /tmp/opengfx.zip -d baseset
echo -e "[network]\nserver_name = berth" > openttd.cfg
