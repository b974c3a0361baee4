#!/bin/bash
# expects: server.properties server-name=kept
# expects: bedrock_server bedrock server
# expects: backups.list permissions.json
cd /mnt/server
echo 'server-name=kept' > server.properties
echo '[]' > permissions.json
BACKUP=()
for f in server.properties permissions.json whitelist.json; do
    if [ -f "$f" ]; then BACKUP+=("$f"); cp "$f" "/tmp/$f.bak"; fi
done
curl -so bedrock.zip "https://minecraft.example/bin-linux/bedrock-server-1.20.zip"
unzip -oq bedrock.zip && rm bedrock.zip
for f in "${BACKUP[@]}"; do cp -f "/tmp/$f.bak" "$f"; done
( IFS=$'\n'; echo "${BACKUP[*]}" ) > backups.list
chmod u+x bedrock_server
