#!/bin/bash
# expects: postgres_db/PG_VERSION 14
# expects: password.length 20
cd /mnt/server/
adduser -D -h /home/container container 2>/dev/null || true
mkdir -p /mnt/server/postgres_db
echo 14 > postgres_db/PG_VERSION
PASSWORD=$(head -c 512 /dev/urandom | tr -dc 'A-Za-z0-9' | head -c 20)
echo "${#PASSWORD}" > password.length
chown -R 1000:1000 postgres_db
chmod 700 postgres_db
echo -e "Done installing"
