#!/bin/bash
# expects: server.properties server-port=25577
# expects: eula.txt eula=true
# expects: server.jar jar of build 435
PROJECT=paper
VERSION="${MINECRAFT_VERSION:-latest}"
cd /mnt/server || exit 1

LATEST=$(curl -sS https://api.example/projects/${PROJECT}/versions.json | tr -d ' "[]' | tr ',' '\n' | tail -n 1)
if [ "${VERSION}" == "latest" ]; then
    VERSION=${LATEST}
fi
BUILD=$(curl -sS "https://api.example/projects/${PROJECT}/${VERSION}/build.txt")
echo -e "Downloading ${PROJECT} ${VERSION} build ${BUILD}"
[ -f "${SERVER_JARFILE}" ] && mv "${SERVER_JARFILE}" "${SERVER_JARFILE}.old"
curl -o "${SERVER_JARFILE}" "https://api.example/downloads/${PROJECT}-${VERSION}-${BUILD}.jar"
if [ ! -f server.properties ]; then
    echo -e "Downloading server.properties"
    curl -o server.properties https://raw.example/defaults/server.properties
fi
sed -i "s/^server-port=.*/server-port=${SERVER_PORT}/" server.properties
echo "eula=${EULA}" > eula.txt
