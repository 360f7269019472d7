# Runs one private PostgreSQL server that cannot outlive the process which wants it: that process holds the other end
# of our stdin, and the kernel closes it however the process dies.
#
# Arguments: folder of the binaries, name of the cluster's folder, where to put it, the port of the server on this machine
# that it is to be a standby of (or nothing), arguments for the server.
# Stdin: the superuser's password in one line; the server's certificate and its key, each in lines that a line with a
# dot ends; then nothing until the end.
# Stdout: the cluster's folder in one line. In the folder: `log`; `ended` once the server is no more. The folder stays
# until stdin ends, so that the log can be read.

# A terminal's Ctrl-C is for the process that holds stdin. Its answer to it reaches us as the end of stdin.
trap '' INT TERM HUP PIPE
umask 077

binaries=$1 name=$2 place=$3 primary=$4
shift 4
IFS= read -r password || exit 1
exec 3<&0 </dev/null

# The user we run as may not be allowed into the caller's own temporary folder.
for parent in "$place" /tmp /var/tmp; do
    folder=$parent/$name
    mkdir "$folder" 2>/dev/null && break
    folder=
done
[ -n "$folder" ] || exit 1

# The server wants its key to be its own.
read_file() {
    while IFS= read -r line && [ "$line" != . ]; do
        printf '%s\n' "$line"
    done >"$1"
}
read_file "$folder/server.crt" <&3
read_file "$folder/server.key" <&3
printf '%s\n' "$folder"
exec >>"$folder/log" 2>&1

nap() {
    sleep 0.05 2>/dev/null || sleep 1
}

initialise() {
    if [ -n "$primary" ]; then
        PGPASSWORD=$password "$binaries/pg_basebackup" -D "$folder/data" -h 127.0.0.1 -p "$primary" -U postgres \
            --write-recovery-conf --checkpoint=fast --no-sync
        return
    fi
    "$binaries/initdb" -D "$folder/data" -U postgres -A password --pwfile="$folder/password" -E UTF8 --locale="$1" \
        --no-sync && return
    rm -rf "$folder/data"
    return 1
}

# Immediate shutdown (QUIT), since nothing is worth saving. A signal may come too early to be heard, hence the loop.
stop() {
    tries=0
    while [ ! -e "$folder/ended" ] && kill -s QUIT "$1" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -gt 200 ] && kill -s KILL "$1"
        nap
    done
}

printf '%s\n' "$password" >"$folder/password"
if initialise C.UTF-8 || initialise C; then
    # A Unix socket's path has room for about 100 bytes.
    sockets=$folder
    [ "${#folder}" -lt 80 ] || sockets=
    "$binaries/postgres" -D "$folder/data" -c unix_socket_directories="$sockets" "$@" 3<&- &
    server=$!
    { cat <&3 >/dev/null; stop "$server"; } &
    wait "$server"
fi
: >"$folder/ended"
cat <&3 >/dev/null
wait
rm -rf "$folder" || { nap && rm -rf "$folder"; }
