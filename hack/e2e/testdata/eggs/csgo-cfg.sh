#!/bin/bash
# expects: game/csgo/cfg/server.cfg hostname "The server of EGG"
mkdir -p /mnt/server/game/csgo/cfg && pushd /mnt/server/game/csgo/cfg > /dev/null
OWNER=egg
{
    echo "hostname \"The server of ${OWNER^^}\""
    echo 'rcon_password ""'
    for cvar in sv_lan:0 sv_cheats:0 mp_autoteambalance:1; do
        echo "${cvar%%:*} ${cvar##*:}"
    done
} > server.cfg
popd > /dev/null
[[ $PWD == /mnt/server ]]
