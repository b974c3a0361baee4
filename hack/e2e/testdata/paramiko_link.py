"""Creates a symbolic link with paramiko: TARGET NAME."""
import sys

import paramiko

port, user, key, known, target, name = sys.argv[1:]

with paramiko.SSHClient() as client:
    client.load_host_keys(known)
    client.connect("127.0.0.1", port=int(port), username=user, key_filename=key, allow_agent=False, look_for_keys=False)
    with client.open_sftp() as sftp:
        sftp.symlink(target, name)
