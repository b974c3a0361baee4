#!/bin/bash
# expects: garrysmod/lua/autorun/server/workshop.lua resource.AddWorkshop( "104603291" )
# expects: garrysmod/cfg/mount.cfg "cstrike"
cd /mnt/server
mkdir -p garrysmod/cfg garrysmod/lua/autorun/server
IFS=',' read -ra IDS <<< "104603291,248302805"
for id in "${IDS[@]}"; do
    echo "resource.AddWorkshop( \"${id}\" )"
done > garrysmod/lua/autorun/server/workshop.lua
tee garrysmod/cfg/mount.cfg > /dev/null <<'EOF'
"mountcfg"
{
	"cstrike"	"/home/container/cstrike"
}
EOF
sum=$(md5sum < garrysmod/cfg/mount.cfg | cut -d' ' -f1)
[ ${#sum} -eq 32 ]
