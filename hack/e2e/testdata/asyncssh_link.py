"""Creates a symbolic link with asyncssh: TARGET NAME."""
import asyncio
import sys

import asyncssh

port, user, key, known, target, name = sys.argv[1:]


async def main():
    async with asyncssh.connect("127.0.0.1", int(port), username=user, client_keys=[key], known_hosts=known, config=None) as conn:
        async with conn.start_sftp_client() as files:
            await files.symlink(target, name)
            assert await files.readlink(name) == target


asyncio.run(main())
