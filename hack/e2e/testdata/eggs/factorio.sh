#!/bin/bash
# expects: data/server-settings.json "name": "berth \"test\""
# expects: bin/x64/factorio factorio server
cd /mnt/server
curl -s https://factorio.example/headless.tar.xz -o /tmp/factorio.tar.xz
tar -C /mnt/server --strip-components=1 -xJf /tmp/factorio.tar.xz
if [[ ! -e data/server-settings.json ]]; then
    cp data/server-settings.example.json data/server-settings.json
fi
NAME='berth "test"'
ESCAPED=${NAME//\"/\\\\\"}
sed -i "s/\"name\": .*/\"name\": \"${ESCAPED}\",/" data/server-settings.json
chmod +x bin/x64/factorio
