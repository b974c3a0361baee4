#!/bin/bash
# expects: app.py print("hello")
# expects: requirements.txt requests>=2
cd /mnt/server
wget -q https://raw.example/bot/app.py
mapfile -t wanted < <(printf 'requests>=2\naiohttp\n')
for one in "${wanted[@]}"; do echo "$one"; done | sort -r > requirements.txt
trap 'rm -f .lock' EXIT
: > .lock
[ "${#wanted[@]}" = 2 ]
