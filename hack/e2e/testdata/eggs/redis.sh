#!/bin/bash
# expects: redis.conf maxmemory 48mb
cd /mnt/server
if [ ! -e redis.conf ]; then
    curl https://raw.example/defaults/redis.conf -o redis.conf
fi
MEM=$(( ${SERVER_MEMORY:-64} * 3 / 4 ))
if grep -q '^maxmemory ' redis.conf; then
    sed -i "s/^maxmemory .*/maxmemory ${MEM}mb/" redis.conf
else
    echo "maxmemory ${MEM}mb" >> redis.conf
fi
