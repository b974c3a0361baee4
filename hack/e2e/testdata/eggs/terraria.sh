#!/bin/bash
# expects: serverconfig.txt worldname=Über World
# expects: TerrariaServer.bin.x86_64 terraria server
cd /mnt/server
echo "downloading"
curl -sSLo terraria.zip https://www.example/terraria-server-1449.zip
CLEAN_VERSION=$(echo "1.4.4.9" | sed 's/\.//g')
unzip -q terraria.zip
cp -R "${CLEAN_VERSION}"/Linux/* ./
chmod +x TerrariaServer.bin.x86_64
rm -rf "${CLEAN_VERSION}" terraria.zip
cat > serverconfig.txt <<-EOF
	worldpath=/home/container/saves/Worlds
	worldname=Über World
	maxplayers=${MAX_PLAYERS:-8}
	EOF
[ -x TerrariaServer.bin.x86_64 ] && echo "Install complete"
