#!/bin/sh
# Installs machine-agent of the cloud at @CLOUD@ on this computer.
#
#   MACHINE_PART_ID       the part of a machine; not needed if /etc/machine.json exists
#   MACHINE_API_KEY_ID, MACHINE_API_KEY   the code of the machine's page, which works once, or a key of an owner
#   MACHINE_CA_FILE       certificates (PEM) to trust for the cloud, if it has an authority of its own
#   MACHINE_RELEASE_ROOT  root.json of the organization: only releases that are signed with its keys are installed
#   MACHINE_MIGRATE=yes   disable viam-agent and viam-server, and copy their credentials
#
# It can be repeated. Nothing runs before the last line has arrived.

main() {
    set -eu
    umask 077
    LC_ALL=C
    export LC_ALL
    cloud='@CLOUD@'
    part=${MACHINE_PART_ID:-} key_id=${MACHINE_API_KEY_ID:-} key=${MACHINE_API_KEY:-}
    # No program that is started here finds the key in its environment.
    unset MACHINE_PART_ID MACHINE_API_KEY_ID MACHINE_API_KEY
    ca=${MACHINE_CA_FILE:-} root=${MACHINE_RELEASE_ROOT:-}

    check_computer
    work=$(mktemp -d /opt/.machine-install.XXXXXX) || fail "/opt cannot be written"
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    credentials
    agent
    set -- --install
    if [ -f "$work/machine.json" ]; then set -- "$@" --credentials "$work/machine.json"; fi
    if [ -n "$root" ]; then set -- "$@" --release-root "$root"; fi
    if [ "${MACHINE_MIGRATE:-}" = yes ]; then set -- "$@" --migrate; fi
    # The rest of the script is the standard input.
    MACHINE_RELEASE_CACHE=$work/cache "$work/machine-agent" "$@" </dev/null || fail "the installation failed; see above"
    say "machine-agent is installed; the machine's page at $cloud shows when it is online"
}

say() { printf 'install: %s\n' "$1"; }

fail() {
    printf 'install: %s\n' "$1" >&2
    if [ -n "${2:-}" ]; then printf '  remedy: %s\n' "$2" >&2; fi
    exit 1
}

check_computer() {
    [ "$(uname -s)" = Linux ] || fail "this is $(uname -s), and machine-agent needs Linux"
    machine=$(uname -m)
    case $machine in
        x86_64 | aarch64) ;;
        *) fail "there are no releases for the processor $machine" "use a computer with x86_64 or aarch64" ;;
    esac
    [ "$(id -u)" = 0 ] || fail "root is required" "write sudo before sh, as in the line of the machine's page"
    [ -d /run/systemd/system ] || fail "systemd is not the init process of this system" \
        "run the release file with --dev-mode under the supervision that the system has"
    for program in curl sha256sum tar xz awk od df mktemp; do
        command -v "$program" >/dev/null || fail "the program $program is missing" \
            "install it: apt-get install curl xz-utils tar coreutils"
    done
    # Byte 4 of a program is 2 for 64 bits: a 64-bit kernel can have a system with 32 bits.
    [ "$(od -An -tx1 -j4 -N1 /proc/self/exe | tr -d ' \n')" = 02 ] || fail "this system has 32 bits" \
        "install the 64-bit version of the operating system"
    mkdir -p /opt
    free=$(df -Pk /opt | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge 700 ] || fail "the disk of /opt has $free MiB free, and the installation needs 700 MiB" "free space"
    now=$(date +%s)
    difference=$((now - @TIME@))
    if [ "$difference" -gt 86400 ] || [ "$difference" -lt -86400 ]; then
        fail "the clock of this computer differs from the cloud's by $((difference / 3600)) hours" \
            "set it: timedatectl set-ntp true, or date --set=@@TIME@"
    fi
    case $cloud in
        https://*) protocol='=https' ;;
        *)
            protocol='=http'
            say "warning: $cloud has no TLS: anyone on the network path can read the key and replace the programs"
            ;;
    esac
    if [ -n "$ca" ]; then
        [ -r "$ca" ] || fail "MACHINE_CA_FILE names $ca, which cannot be read"
    fi
}

# Print the value of a key in the credentials of this computer, or in another file.
stored() { tr -d '\n' <"${2:-/etc/machine.json}" | sed -n "s/.*\"$1\" *: *\"\([A-Za-z0-9_.-]*\)\".*/\1/p"; }

# Stop unless a value consists of characters that need no quoting anywhere.
plain() {
    case $2 in
        '') fail "$1 is missing" "copy the line from the machine's page in the cloud" ;;
        *[!A-Za-z0-9_.-]*) fail "$1 has characters that it cannot have" "copy the line from the machine's page" ;;
    esac
}

# Get PATH into FILE as the user with the password, or with a fifth argument post to it; no other user sees them, because curl reads its options from a pipe.
request() {
    status=$(
        {
            printf 'url = "%s%s"\noutput = "%s"\n' "$cloud" "$1" "$2"
            if [ -n "${3:-}" ]; then printf 'user = "%s:%s"\nbasic\n' "$3" "$4"; fi
            if [ -n "${5:-}" ]; then printf 'data = ""\n'; fi
            if [ -n "$ca" ]; then printf 'cacert = "%s"\n' "$ca"; fi
        } | curl -q --globoff --silent --show-error --proto "$protocol" --connect-timeout 20 --retry 3 --retry-delay 2 \
            --speed-limit 100 --speed-time 60 --max-filesize 300000000 --write-out '%{http_code}' --config -
    ) || fail "$cloud cannot be reached" "check network, name resolution, clock and certificates, then repeat the line"
    [ "$status" = 200 ] && return
    text=$(head -c 1000 "$2" 2>/dev/null | tr -cd ' -~\n' | sed 's/^{"error": *"\(.*\)"}$/\1/')
    rm -f "$2"
    fail "the cloud answered with HTTP status $status: $text"
}

use_stored() {
    say "using the credentials in /etc/machine.json"
    part=$(stored id) key_id=$part key=$(stored secret)
    plain "the part id in /etc/machine.json" "$part"
    plain "the secret in /etc/machine.json" "$key"
    if [ -z "$ca" ] && grep -q '"ca_file"' /etc/machine.json; then ca=/etc/machine-cloud-ca.pem; fi
}

# Use the code in the line, which works once: the credentials stay on this computer, so that the line can be repeated.
redeem() {
    nonce=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
    if ! (request "/machine/v1/install?nonce=$nonce" "$work/machine.json" "$key_id" "$key" post); then
        if ! [ -s /etc/machine.json ] || [ "$(stored id)" != "$part" ]; then exit 1; fi
        use_stored
        return
    fi
    [ "$(stored id "$work/machine.json")" = "$part" ] || fail "the line is for another machine" \
        "copy the whole line from the machine's page in the cloud"
    key_id=$part key=$(stored secret "$work/machine.json")
    plain "the secret of the machine" "$key"
    if grep -q '"ca_file"' "$work/machine.json"; then request /ca.pem "$work/machine-cloud-ca.pem"; fi
    if ! [ -s /etc/machine.json ]; then
        if [ -f "$work/machine-cloud-ca.pem" ]; then cp "$work/machine-cloud-ca.pem" /etc/machine-cloud-ca.pem; fi
        cp "$work/machine.json" /etc/machine.json
    fi
    say "the cloud knows this machine"
}

credentials() {
    if [ -z "$part$key_id$key" ] && [ -s /etc/machine.json ]; then
        use_stored
        return
    fi
    plain MACHINE_PART_ID "$part"
    plain MACHINE_API_KEY_ID "$key_id"
    plain MACHINE_API_KEY "$key"
    case $key_id in
        install-*)
            redeem
            return
            ;;
    esac
    request "/api/json1/config?client=true&id=$part" "$work/machine.json" "$key_id" "$key"
    if grep -q '"ca_file"' "$work/machine.json"; then request /ca.pem "$work/machine-cloud-ca.pem"; fi
    say "the cloud knows this machine"
}

agent() {
    request "/machine/v1/installer?part=$part&platform=linux/$machine" "$work/offer" "$key_id" "$key"
    version=$(sed -n 's/^version //p' "$work/offer")
    expected=$(sed -n 's/^sha256 //p' "$work/offer")
    path=$(sed -n 's/^path //p' "$work/offer")
    case $path in
        /*) ;;
        *) fail "the cloud answered without a path" "update the cloud" ;;
    esac
    case $path in *[!A-Za-z0-9/._?=\&%-]*) fail "the cloud answered with an invalid path" "update the cloud" ;; esac
    say "downloading machine-agent $version for linux/$machine"
    request "$path" "$work/machine-agent"
    actual=$(sha256sum "$work/machine-agent")
    [ "${actual%% *}" = "$expected" ] || fail "the downloaded file has another SHA-256 than the cloud named" \
        "repeat the line; if this happens again, publish the version again"
    chmod 700 "$work/machine-agent"
    MACHINE_RELEASE_CACHE=$work/cache "$work/machine-agent" --version </dev/null || fail \
        "machine-agent $version does not run on this system" "it needs glibc 2.36: Debian 12, Raspberry Pi OS bookworm"
}

main
