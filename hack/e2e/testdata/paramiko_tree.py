"""Copies a tree with paramiko: put FROM TO, or get FROM TO, with modes and times."""
import os
import stat
import sys

import paramiko

port, user, key, known, verb, source, target = sys.argv[1:]


def put(files, local, remote):
    files.mkdir(remote)
    for entry in os.scandir(local):
        path = f"{remote}/{entry.name}"
        if entry.is_dir():
            put(files, entry.path, path)
            continue
        files.put(entry.path, path)
        info = entry.stat()
        files.chmod(path, stat.S_IMODE(info.st_mode))
        files.utime(path, (info.st_atime, info.st_mtime))


def get(files, remote, local):
    os.mkdir(local)
    for entry in files.listdir_attr(remote):
        path = os.path.join(local, entry.filename)
        if stat.S_ISDIR(entry.st_mode):
            get(files, f"{remote}/{entry.filename}", path)
            continue
        files.get(f"{remote}/{entry.filename}", path)
        os.chmod(path, stat.S_IMODE(entry.st_mode))
        os.utime(path, (entry.st_atime, entry.st_mtime))


with paramiko.SSHClient() as client:
    client.load_host_keys(known)
    client.connect("127.0.0.1", port=int(port), username=user, key_filename=key, allow_agent=False, look_for_keys=False)
    with client.open_sftp() as sftp:
        {"put": put, "get": get}[verb](sftp, source, target)
