#!/usr/bin/env bash
# Makes the archive of ../debian_archive.rs anew in this directory, with a new key that nobody keeps. Needs gpg and dpkg-deb.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'gpgconf --homedir "$work/keys" --kill gpg-agent; rm -rf "$work"' EXIT
mkdir -m 700 "$work/keys"
mkdir -p "$work/tiny/DEBIAN" pool dists/probe/main/binary-all
printf 'Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.test>\nDescription: nothing\n' >"$work/tiny/DEBIAN/control"
echo tiny >"$work/tiny/tiny"
dpkg-deb --root-owner-group --build "$work/tiny" pool/tiny.deb >/dev/null
sum() { sha256sum "$1" | cut -d' ' -f1; }
packages=dists/probe/main/binary-all/Packages.xz
printf 'Package: tiny\nVersion: 1\nArchitecture: all\nFilename: pool/tiny.deb\nSHA256: %s\n' "$(sum pool/tiny.deb)" | xz >"$packages"
release="Suite: probe\nCodename: probe\nDate: Sat, 01 Jan 2000 00:00:00 UTC\nSHA256:\n %s %s main/binary-all/Packages.xz\n"
printf "$release" "$(sum "$packages")" "$(stat -c %s "$packages")" >"$work/Release"
# In the past, so that no machine's clock is before it.
gpg=(gpg --homedir "$work/keys" --batch --quiet --faked-system-time 20200101T000000! --passphrase '')
"${gpg[@]}" --quick-generate-key "slowpath test" ed25519 sign never
"${gpg[@]}" --export >keys.gpg
"${gpg[@]}" --clearsign <"$work/Release" >dists/probe/InRelease
