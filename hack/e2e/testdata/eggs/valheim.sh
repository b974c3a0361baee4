#!/bin/bash
# expects: start.txt -name "My Server" -port 2456
# expects: .config/world.txt Dedicated
export HOME=/mnt/server
cd ~
args=(-name "My Server" -port "${SERVER_PORT_V:-2456}" -world Dedicated)
out=""
i=0
while [ $i -lt ${#args[@]} ]; do
    case "${args[$i]}" in
        -*) out+="${args[$i]} " ;;
        *\ *) out+="\"${args[$i]}\" " ;;
        *) out+="${args[$i]} " ;;
    esac
    let i+=1
done
echo "$out" > start.txt
mkdir -p ~/.config
echo "${args[-1]}" > ~/.config/world.txt
