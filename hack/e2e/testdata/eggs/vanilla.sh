#!/bin/bash
# expects: server.jar jar of 1.21.4
mkdir -p /mnt/server
cd /mnt/server
MANIFEST=$(curl -sSL https://launcher.example/version_manifest.txt)
while IFS=' ' read -r version url; do
    if [[ "$version" == "1.21.4" ]]; then
        DOWNLOAD_URL=$url
        break
    fi
done <<< "$MANIFEST"
if [[ -z "$DOWNLOAD_URL" ]]; then echo "no such version"; exit 1; fi
curl -o ${SERVER_JARFILE} "$DOWNLOAD_URL"
