#!/bin/bash
# expects: murmur.ini users=100
cd /mnt/server
curl -sL https://raw.example/defaults/murmur.ini > murmur.ini.dist
grep -v '^;' murmur.ini.dist | sed -e '/^$/d' -e "s/^users=.*/users=${MAX_USERS:-100}/" > murmur.ini
count=$(wc -l < murmur.ini)
(( count == 3 )) || { echo "expected 3 lines, found $count"; exit 1; }
