#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Make an auth_file of the users of a running PostgreSQL.

    mkauth.py DEST CONNSTR

DEST is the file, or - for standard output; CONNSTR is what psql -d takes, for a user that may
read pg_shadow. Users without a password or with an expired one are left out. The file is replaced
in one step, and not touched if nothing has changed, so cron may run this; then send SIGHUP, or
RELOAD. Only its owner can read a new file.
"""

import os
import subprocess
import sys
import tempfile

QUERY = """
    SELECT '"' || replace(usename::text, '"', '""') || '" "' || replace(passwd, '"', '""') || '"'
    FROM pg_catalog.pg_shadow
    WHERE passwd <> '' AND (valuntil IS NULL OR valuntil > now())
    ORDER BY usename::text COLLATE "C"
"""


def read_users(connection):
    """The lines of the file; a name or password with a line feed in it has no line to stand in."""
    done = subprocess.run(
        ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--record-separator-zero"]
        + ["--set=ON_ERROR_STOP=1", "--dbname", connection, "--command", QUERY],
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = [line for line in done.stdout.split(b"\0") if line.strip(b"\n")]
    if any(b"\n" in line for line in lines):
        sys.exit("mkauth.py: a name or password holds a line feed")
    if not lines:
        sys.exit("mkauth.py: no user has a password; nothing was written")
    return b"".join(line + b"\n" for line in lines)


def replace(path, text):
    """Put the text in the file's place, with the file's owner and mode if there is one."""
    try:
        with open(path, "rb") as file:
            if file.read() == text:
                return
            old = os.fstat(file.fileno())
    except FileNotFoundError:
        old = None
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".mkauth-", delete=False) as file:
        try:
            if old:
                os.fchmod(file.fileno(), old.st_mode & 0o7777)
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.rename(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def main(arguments):
    """Returns the exit code."""
    if len(arguments) != 2 or arguments[0] in ("-h", "--help"):
        print("usage: mkauth.py DEST CONNSTR", file=sys.stderr)
        return 1
    destination, connection = arguments
    try:
        text = read_users(connection)
    except FileNotFoundError:
        print("mkauth.py: psql was not found", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1  # psql has said why
    if destination == "-":
        sys.stdout.buffer.write(text)
    else:
        try:
            replace(destination, text)
        except OSError as error:
            print(f"mkauth.py: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
