# What the acceptance runs with browsers share: the program and the words that keep it quiet and off the network. Sourced.
slowpath=${SLOWPATH:-target/release/slowpath}
chromium="/usr/lib/chromium/chromium --headless --disable-gpu --no-first-run --disable-background-networking \
--disable-component-update --disable-sync --disable-quic"
firefox="/usr/lib/firefox-esr/firefox-esr --headless --no-remote --profile {tmp} {url}"
# As a user without rights, whose files all go to the directory of the launch.
as_nobody=(--quiet --user nobody --env 'HOME={tmp}' --env 'TMPDIR={tmp}')

# A directory that nobody can read, gone at the end.
shared_directory() {
    directory=$(mktemp -d /var/tmp/slowpath-accept-XXXXXX)
    trap 'rm -rf "$directory"' EXIT
    chmod 755 "$directory"
}

# Runs a command, and shows both; quotes stand where a word needs them.
shown() {
    local words="${*@Q}"
    words=$(sed -E "s/'([A-Za-z0-9_.,:=\/+-]+)'/\1/g" <<<"$words")
    printf '```console\n$ %s\n' "${words//"$slowpath"/slowpath}"
    "$@"
    printf '```\n\n'
}
