#!/bin/bash
# expects: unix_args.txt -jar forge-1.20.1-47.2.0.jar
# expects: libraries/net/minecraftforge/forge/47.2.0/args.txt --launchTarget
set -e
if [ ! -d /mnt/server ]; then mkdir /mnt/server; fi
cd /mnt/server
FORGE_VERSION=1.20.1-47.2.0
if [[ ${FORGE_VERSION} =~ ^([0-9]+\.[0-9]+(\.[0-9]+)?)-(.+)$ ]]; then
    MC=${BASH_REMATCH[1]}
    FORGE=${BASH_REMATCH[3]}
else
    exit 2
fi
mkdir -p "libraries/net/minecraftforge/forge/${FORGE}"
cat <<EOF > "libraries/net/minecraftforge/forge/${FORGE}/args.txt"
--launchTarget forgeserver
--fml.mcVersion ${MC}
EOF
rm -rf unix_args.txt
echo "-jar forge-${MC}-${FORGE}.jar" > real_args.txt
ln -sf real_args.txt unix_args.txt
