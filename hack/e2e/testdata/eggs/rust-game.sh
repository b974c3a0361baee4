#!/bin/bash
# expects: steamapps/appmanifest_258550.acf "appid" "258550"
# expects: .steam/sdk64/steamclient.so client 64
if [[ "${STEAM_USER}" == "" ]] || [[ "${STEAM_PASS}" == "" ]]; then
    echo -e "steam user is not set.\n"
    echo -e "Using anonymous user.\n"
    STEAM_USER=anonymous
fi
SRCDS_APPID=258550
cd /tmp
mkdir -p /mnt/server/steamcmd
curl -sSL -o steamcmd.tar.gz https://steamcdn.example/steamcmd_linux.tar.gz
tar -xzvf steamcmd.tar.gz -C /mnt/server/steamcmd
mkdir -p /mnt/server/steamapps
cd /mnt/server/steamcmd
chown -R root:root /mnt
export HOME=/mnt/server
bash ./steamcmd.sh +force_install_dir /mnt/server +login ${STEAM_USER} +app_update ${SRCDS_APPID} validate +quit
mkdir -p /mnt/server/.steam/sdk32 /mnt/server/.steam/sdk64
cp -v linux32/steamclient.so ../.steam/sdk32/steamclient.so
cp -v linux64/steamclient.so ../.steam/sdk64/steamclient.so
