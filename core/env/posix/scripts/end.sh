# token group witness: ends a command with all that it started, and prints how
# many processes that were.
token=$1 group=$2 witness=$3
finish all 190
echo "$left"
