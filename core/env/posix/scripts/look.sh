# token group witness: prints the living processes of a command, and a period at
# the end.
token=$1 group=$2 witness=$3
scan all
printf '%s.\n' "$pids"
