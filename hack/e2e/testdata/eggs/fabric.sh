#!/bin/bash
# expects: fabric-server-launcher.properties serverJar=server.jar
# expects: eggfiles.list mods
cd /mnt/server
declare -A channel=( [stable]=0.15.7 [beta]=0.16.0 )
LOADER=${channel[${FABRIC_CHANNEL:-stable}]}
printf -v line 'serverJar=%s' "${SERVER_JARFILE:-server.jar}"
echo "$line" > fabric-server-launcher.properties
for dir in mods config logs "world/data packs"; do
    mkdir -p "$dir"
done
shopt -s nullglob
folders=(*/)
printf '%s\n' "${folders[@]%/}" > eggfiles.list
echo "loader ${LOADER}, ${#folders[@]} folders"
[ "${#folders[@]}" -eq 4 ]
