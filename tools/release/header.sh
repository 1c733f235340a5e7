#!/bin/sh
# machine-release @HEADER@
# Unpacks the archive at the end of this file once, into a folder named by its hash, and runs the program in it.
set -eu
program=@PROGRAM@
sha256=@SHA256@
begin=@BEGIN@

fail() { echo "$program: $1" >&2; exit 1; }

if [ -n "${MACHINE_RELEASE_CACHE:-}" ]; then cache=$MACHINE_RELEASE_CACHE
elif [ "$(id -u)" = 0 ]; then cache=/var/cache/machine-releases
else cache=${XDG_CACHE_HOME:-${HOME:?set HOME or MACHINE_RELEASE_CACHE}/.cache}/machine-releases; fi
folder=$cache/$sha256
if [ ! -x "$folder/run" ]; then
    command -v xz >/dev/null || fail 'the program "xz" is missing: install the package xz-utils'
    umask 022
    mkdir -p -m 0755 "$cache" || fail "set MACHINE_RELEASE_CACHE to a folder that can be written"
    part=$(mktemp -d "$cache/.part.XXXXXX") || fail "set MACHINE_RELEASE_CACHE to a folder that can be written"
    trap 'rm -rf "$part"' EXIT
    trap 'exit 1' HUP INT TERM
    actual=$(tail -c "+$begin" "$0" | sha256sum)
    [ "${actual%% *}" = "$sha256" ] || fail "$0 is damaged: download it again"
    mkdir "$part/tree"
    tail -c "+$begin" "$0" | xz -dc | tar -x -f - -C "$part/tree" --no-same-owner ||
        fail "$0 cannot be unpacked into $cache: is the disk full?"
    # If another start was faster, its folder stays: it has the same content.
    mv -T "$part/tree" "$folder" 2>/dev/null || [ -x "$folder/run" ] || fail "$folder cannot be created"
    rm -rf "$part"
    trap - EXIT HUP INT TERM
fi
[ -O "$folder" ] || fail "$folder belongs to another user: set MACHINE_RELEASE_CACHE to your own folder"
# Installing needs this file itself: its hash is the identity of the release.
MACHINE_RELEASE_FILE=$(readlink -f -- "$0") || fail "$0 cannot be found"
MACHINE_RELEASE_FOLDER=$folder
export MACHINE_RELEASE_FILE MACHINE_RELEASE_FOLDER
exec "$folder/run" "$@"
exit 1
__PAYLOAD__
