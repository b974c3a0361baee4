#!/bin/bash
# expects: ts3server.ini default_voice_port=9987
# expects: .ts3server_license_accepted accepted
cd /mnt/server
touch .ts3server_license_accepted
echo accepted >> .ts3server_license_accepted
(
    echo "machine_id="
    echo "default_voice_port=${VOICE_PORT:-9987}"
    echo "query_protocols=raw,ssh"
) > ts3server.ini
chmod 600 ts3server.ini
mode=$(stat -c %a ts3server.ini)
[ "$mode" = "600" ] || exit 1
