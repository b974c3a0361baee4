#!/bin/bash
# expects: config.yml host: 0.0.0.0:25577
# expects: bungeecord.jar jar of build 1700
cd /mnt/server
if [ -z "${BUNGEE_VERSION}" ] || [ "${BUNGEE_VERSION}" == "latest" ]; then
    BUNGEE_VERSION="lastStableBuild"
fi
curl -o bungeecord.jar https://ci.example/job/BungeeCord/${BUNGEE_VERSION}/artifact/BungeeCord.jar
if [ ! -f config.yml ]; then
cat > config.yml << 'CONFIG'
listeners:
- query_port: 25577
  motd: '&1A Proxy'
  host: 0.0.0.0:PORT
CONFIG
fi
sed -i -e "s/PORT/${SERVER_PORT}/" config.yml
