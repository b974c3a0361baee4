#!/bin/bash
# expects: index.js console.log("Done")
# expects: package.json "main": "index.js"
mkdir -p /mnt/server
cd /mnt/server
if [ "${USER_UPLOAD}" == "true" ] || [ "${USER_UPLOAD}" == "1" ]; then
    echo -e "assuming user knows what they are doing have a good day."
    exit 0
fi
if [[ ${GIT_ADDRESS} != *.git ]]; then
    GIT_ADDRESS=${GIT_ADDRESS}.git
fi
if [ "$(ls -A /mnt/server)" ]; then
    echo -e "/mnt/server directory is not empty."
else
    echo -e "/mnt/server is empty."
    cat > package.json <<EOF
{ "name": "bot", "main": "index.js" }
EOF
    printf 'console.log("Done")\n' > index.js
fi
echo -e "install complete"
exit 0
