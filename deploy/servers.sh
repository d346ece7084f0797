#!/bin/sh
# Writes the list of processes that nginx.conf includes, in Docker and without it. From the environment it takes
# PROCESSES, their number; SERVER, where process %d is; RESOLVER, a line before the list, if any; and LIST, the file.
set -eu
{
    echo "${RESOLVER:-}"
    for number in $(seq "$PROCESSES"); do
        # shellcheck disable=SC2059
        printf "server $SERVER max_fails=1 fail_timeout=2s;\n" "$number"
    done
} >"${LIST:-/etc/nginx/servers.conf}"
